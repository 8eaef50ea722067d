// JobStatus as JSON and back, as a journal keeps it.
#pragma once

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/job/job_status.h"

namespace muster::control {

using formats::Json;

// No member is null, since RFC 7396 patches delete null members. The result parses back to an equal
// status.
Json ToJson(const job::JobStatus& status);
Json ToJson(const job::TaskEnd& end);

// INVALID_ARGUMENT "WHERE: ..." for JSON that ToJson() would not have written.
absl::StatusOr<job::JobStatus> StatusFromJson(const Json& json, const std::string& where);
absl::StatusOr<job::TaskEnd> EndFromJson(const Json& json, const std::string& where);

}  // namespace muster::control
