#include "muster/io/path_scheme.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

#include "muster/base/strings.h"

namespace muster::io {
namespace {

constexpr std::string_view kLocalhost = "localhost";
// Hadoop's users write "hdfs:/data" for "hdfs:///data".
constexpr std::array<std::string_view, 4> kWithOneSlash = {kFileScheme, "hdfs", "webhdfs",
                                                           "swebhdfs"};

bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

bool IsSchemeCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
}

struct Parts {
  std::string_view scheme = {}, authority = {};
  std::string_view rest = {};  // "/data" of "hdfs://namenode/data"; without a scheme the whole path
};

Parts Split(std::string_view path) {
  const Parts local = {.rest = path};
  const size_t colon = path.find(':');
  if (colon == path.npos || colon == 0 || !IsLetter(path[0])) return local;
  const std::string_view scheme = path.substr(0, colon);
  if (!std::all_of(scheme.begin(), scheme.end(), IsSchemeCharacter)) return local;
  const std::string_view rest = path.substr(colon + 1);
  if (rest.starts_with("//")) {
    const size_t end = std::min(rest.find('/', 2), rest.size());
    return {.scheme = scheme, .authority = rest.substr(2, end - 2), .rest = rest.substr(end)};
  }
  const bool may_be_short = std::ranges::find(kWithOneSlash, scheme) != kWithOneSlash.end();
  if (may_be_short && rest.starts_with('/')) return {.scheme = scheme, .rest = rest};
  return local;
}

}  // namespace

std::string_view PathScheme(std::string_view path) { return Split(path).scheme; }

std::string_view PathAuthority(std::string_view path) { return Split(path).authority; }

size_t PathRootSize(std::string_view path) {
  const std::string_view rest = Split(path).rest;
  return path.size() - rest.size() + (rest.starts_with('/') ? 1 : 0);
}

absl::StatusOr<std::string> LocalPath(std::string_view path) {
  const Parts parts = Split(path);
  if (parts.scheme.empty()) return std::string(path);
  if (parts.scheme != kFileScheme) {
    return absl::InvalidArgumentError(
        StrCat(path, ": there is no file system for '", parts.scheme,
               "://' here; known are paths of this machine, plain or as file:///PATH"));
  }
  if (!parts.authority.empty() && parts.authority != kLocalhost) {
    return absl::InvalidArgumentError(
        StrCat(path, ": file:// reads this machine's files only; write file:///PATH"));
  }
  return std::string(parts.rest.empty() ? "/" : parts.rest);
}

}  // namespace muster::io
