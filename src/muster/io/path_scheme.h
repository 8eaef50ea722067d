// The scheme of a path: "hdfs" of "hdfs://namenode/models". A path without one is a local path.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::io {

// A letter, then letters, digits, '+', '-' and '.', before "://" (RFC 3986), or, of file, hdfs,
// webhdfs and swebhdfs, before ":/": "hdfs:/data" is "hdfs:///data". "" if there is none.
std::string_view PathScheme(std::string_view path);

inline constexpr std::string_view kFileScheme = "file";  // of local paths written as URLs

// What comes between "://" and the next '/', such as "namenode:8020"; "" if there is nothing.
std::string_view PathAuthority(std::string_view path);

// The size of the root in bytes: of "scheme://authority" and the '/' after it, 1 for "/", 0 for a
// relative path.
size_t PathRootSize(std::string_view path);

// The local path that `path` means: itself, or what comes after "file://". Other schemes, and a
// file:// of another host, are INVALID_ARGUMENT, which names the known ones.
absl::StatusOr<std::string> LocalPath(std::string_view path);

}  // namespace muster::io
