#include "muster/job/job_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"

namespace muster::job {
namespace {

// Kubernetes allows at most 63 characters of a-z, 0-9 and '-', of which the first is a letter and
// the last is not '-'. Room is left for "-evaluator-12345".
constexpr size_t kMaxName = 46;
constexpr size_t kMaxNamespace = 63;

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

// ": 'my-job' would do" for "My job"; "" if nothing is left of the name.
std::string SuggestName(std::string_view name, size_t most = kMaxName) {
  std::string valid;
  for (const unsigned char c : name.substr(0, most)) {
    const bool keeps = absl::ascii_isalnum(c) && c < 0x80;
    if (valid.empty() && !absl::ascii_isalpha(c)) continue;
    valid += keeps ? absl::ascii_tolower(c) : '-';
  }
  valid.erase(valid.find_last_not_of('-') + 1);
  return valid.empty() ? "" : StrCat(": '", valid, "' would do");
}

}  // namespace

absl::Status CheckName(std::string_view name) {
  if (IsJobName(name) && name.size() <= kMaxName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the job's name '", name, "' is not 1 to ", kMaxName,
             " of a-z, 0-9, '-' and '_' that begin with a letter and do not end in '-' or '_'",
             SuggestName(name)));
}

absl::Status CheckClusterName(std::string_view name) {
  if (CheckName(name).ok() && name.find('_') == name.npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("the job's name '", name, "' is not 1 to ", kMaxName,
             " of a-z, 0-9 and '-' that begin with a letter and do not end in '-', as names in "
             "Kubernetes are",
             SuggestName(name)));
}

absl::Status CheckNamespace(std::string_view name) {
  const bool is_label = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
  const bool has_ends = !name.empty() && name.front() != '-' && name.back() != '-';
  if (is_label && has_ends && name.size() <= kMaxNamespace) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      "the namespace '", name, "' is not 1 to ", kMaxNamespace,
      " of a-z, 0-9 and '-' that neither begin nor end with '-', as namespaces of Kubernetes are",
      SuggestName(name, kMaxNamespace)));
}

}  // namespace muster::job
