#include "muster/io/path_scheme.h"

#include <algorithm>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"

namespace muster::io {
namespace {

constexpr std::string_view kSeparator = "://";
constexpr std::string_view kLocalhost = "localhost";

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

bool IsSchemeCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
}

}  // namespace

std::string_view PathScheme(std::string_view path) {
  const size_t end = path.find(kSeparator);
  if (end == std::string_view::npos || end == 0 || !IsLetter(path[0])) return {};
  const std::string_view scheme = path.substr(0, end);
  return std::all_of(scheme.begin(), scheme.end(), IsSchemeCharacter) ? scheme : std::string_view();
}

std::string_view PathAuthority(std::string_view path) {
  const std::string_view scheme = PathScheme(path);
  if (scheme.empty()) return {};
  path.remove_prefix(scheme.size() + kSeparator.size());
  return path.substr(0, path.find('/'));
}

size_t PathRootSize(std::string_view path) {
  const std::string_view scheme = PathScheme(path);
  if (scheme.empty()) return path.starts_with('/') ? 1 : 0;
  const size_t slash = path.find('/', scheme.size() + kSeparator.size());
  return slash == std::string_view::npos ? path.size() : slash + 1;
}

absl::StatusOr<std::string> LocalPath(std::string_view path) {
  const std::string_view scheme = PathScheme(path);
  if (scheme.empty()) return std::string(path);
  if (scheme != kFileScheme) {
    return absl::InvalidArgumentError(
        StrCat(path, ": there is no file system for '", scheme,
               "://' here; known are paths of this machine, plain or as file:///PATH"));
  }
  std::string_view rest = path.substr(kFileScheme.size() + kSeparator.size());
  if (rest.starts_with(kLocalhost)) rest.remove_prefix(kLocalhost.size());
  if (!rest.empty() && !rest.starts_with('/')) {
    return absl::InvalidArgumentError(
        StrCat(path, ": file:// reads this machine's files only; write file:///PATH"));
  }
  return std::string(rest.empty() ? "/" : rest);
}

}  // namespace muster::io
