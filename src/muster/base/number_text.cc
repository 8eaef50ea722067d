#include "muster/base/number_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

#include "muster/base/strings.h"

namespace muster {

std::string FormatCount(double count) {
  if (count >= 999.5e6) return absl::StrFormat("%.1fG", count / 1e9);
  if (count >= 999.5e3) return absl::StrFormat("%.1fM", count / 1e6);
  if (count >= 9999.5) return absl::StrFormat("%.0fk", count / 1e3);
  if (count >= 999.5) return absl::StrFormat("%.1fk", count / 1e3);
  return absl::StrFormat("%.0f", count);
}

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600) return absl::StrFormat("%dh %02dm", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  return absl::StrFormat("%ds", whole);
}

std::string GroupDigits(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace muster
