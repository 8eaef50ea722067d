// The state of a job whose status.muster is gone: while a definition of TFJob that does not know
// the field is installed, any change that somebody makes to the job removes it for good.
#pragma once

#include <optional>

#include "muster/job/reconcile.h"
#include "muster/launch/kubernetes/job_cache.h"

namespace muster::launch::kubernetes {

// Whether the status has conditions and no state, and a pod shows that an operator of Muster has
// run the job.
bool HasLostItsState(const JobView& view);

// What conditions and pods still say: its tasks continue in the incarnations of their pods, the
// next ones follow after these, and its time counts from its start. Restarts that were counted are
// forgotten. To be used if HasLostItsState().
job::JobStatus RebuildState(const JobView& view, const job::Now& now);

}  // namespace muster::launch::kubernetes
