#include "muster/job/job_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"

namespace muster::job {
namespace {

// Kubernetes allows at most 63 characters of a-z, 0-9 and '-', of which the first is a letter and
// the last is not '-'. Room is left for "-evaluator-12345".
constexpr size_t kMaxName = 46;

// Checks for a DNS label in which '_' is allowed too: on one machine nothing is looked up by a
// job's name.
bool IsJobName(std::string_view name) {
  if (name.empty() || !absl::ascii_islower(static_cast<unsigned char>(name.front())) ||
      name.back() == '-' || name.back() == '_') {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_';
  });
}

}  // namespace

absl::Status CheckName(std::string_view name) {
  if (IsJobName(name) && name.size() <= kMaxName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the job's name '", name, "' is not 1 to ", kMaxName,
             " of a-z, 0-9, '-' and '_' that begin with a letter and do not end in '-' or '_'"));
}

}  // namespace muster::job
