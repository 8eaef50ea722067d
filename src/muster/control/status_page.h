// A page about a job for a browser: what `muster status` says, as HTML without scripts, forms or
// links to other machines. It has nothing that is not in the job's description, so no secret.
#pragma once

#include <string>

#include "muster/formats/json_fields.h"

namespace muster::control {

// `job` is a result of JobPlace::Describe(). The page loads itself again while the job runs, and
// names "status.json" beside itself, which is to have `job`.
std::string PrintStatusPage(const formats::Json& job);

}  // namespace muster::control
