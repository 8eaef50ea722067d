// Tar archives (POSIX.1-1988, ustar) of files that fit into memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::launch::yarn {

struct TarEntry {
  std::string name = {};
  std::string bytes = {};
  int mode = 0400;
};

// Equal entries make equal bytes. INVALID_ARGUMENT for a name that is too long for an archive.
absl::StatusOr<std::string> MakeTar(const std::vector<TarEntry>& entries);

// The bytes of the file of that name in an archive that MakeTar made. NOT_FOUND without it;
// DATA_LOSS if the archive is no such one, or ends before its end.
absl::StatusOr<std::string> ReadFromTar(std::string_view tar, std::string_view name);

}  // namespace muster::launch::yarn
