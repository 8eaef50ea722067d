// JobPlace: a job, wherever it runs, as `muster list`, `status`, `logs`, `stop`, `suspend`,
// `resume`, `rm`, `tensorboard` and `spec` see it. The verbs know nothing else about a place. There
// is one implementation per kind of place (launch/local/local_place.h); each passes
// job_place_conformance.h. cli/jobs/job_client.cc has the table of kinds.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/control/log_source.h"
#include "muster/formats/json_fields.h"
#include "muster/job/job_spec.h"

namespace muster::control {

// One owner thread. Errors name the job. UNAVAILABLE: the place did not answer within the time that
// the implementation allows; the call may be repeated. A place that has moved is found again by the
// implementation.
class JobPlace {
 public:
  virtual ~JobPlace() = default;

  // The result of control::DescribeJob(), as current as possible. If nothing answers but a record
  // of the job can be read, the result is what the record says. Unless the job has ended, the
  // member "coordinator" then says why nothing answers and what to do, and "lost" is true if
  // nothing of the job runs any more.
  virtual absl::StatusOr<formats::Json> Describe() = 0;

  // Orders the end of the job; `why` becomes the reason that its description shows. It may return
  // before the job has ended. It changes nothing for a job that has ended or is ending, so Stop may
  // be repeated; an implementation may repeat it itself when the process that took the order was
  // lost. A job that nothing runs is closed: what is left of it is ended, and its record says that
  // it has failed.
  virtual absl::Status Stop(const std::string& why) = 0;

  // Suspends the job (its tasks end, the job does not) or resumes it. May be repeated.
  // FAILED_PRECONDITION for a job that has ended or that nothing runs.
  virtual absl::Status Suspend(bool suspended) = 0;

  // Continues a job that is suspended, or that nothing runs any more. FAILED_PRECONDITION for a job
  // that has ended, or that runs and is not suspended.
  virtual absl::Status Resume() = 0;

  // Removes what the place keeps of a job that has ended or that nothing runs: its record, its
  // logs, its staged files. A folder in which its tasks worked stays if it holds files that were
  // not staged, unless `with_work`; its path is returned, or "" if nothing is left.
  // FAILED_PRECONDITION for a job that runs.
  virtual absl::StatusOr<std::string> Remove(bool with_work) = 0;

  // The log of one task, from the oldest byte that is kept. NOT_FOUND if the job has no such task.
  // The source must not be used after this object's lifetime.
  virtual absl::StatusOr<std::unique_ptr<LogSource>> OpenLog(job::TaskId task) = 0;

  // Waits until nothing runs the job any more and nothing will start to run it by itself, `seconds`
  // have passed, or a signal arrives. Returns true if nothing runs it. With 0 seconds it only
  // looks.
  virtual bool WaitForEnd(double seconds) = 0;
};

}  // namespace muster::control
