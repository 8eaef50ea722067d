// StrCat over std::string_view.
//
// Debian builds abseil with a string_view class of its own (absl::string_view is not
// std::string_view). Our interfaces use std::string_view; these functions convert to abseil's.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

namespace internal {
inline absl::string_view CatArgument(std::string_view s) { return ToAbsl(s); }
inline const std::string& CatArgument(const std::string& s) { return s; }
inline const char* CatArgument(const char* s) { return s; }
template <typename T>
const T& CatArgument(const T& value) {
  return value;
}
}  // namespace internal

// The arguments as text, concatenated: absl::StrCat.
template <typename... Arguments>
[[nodiscard]] std::string StrCat(const Arguments&... arguments) {
  return absl::StrCat(internal::CatArgument(arguments)...);
}

}  // namespace muster
