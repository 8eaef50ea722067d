// Copies of files and folders within a FileSystem.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::io {

// Copies a file in pieces, whatever its size, and syncs the copy. `to` is replaced; its folder
// exists. A failure leaves what was written: `to` is to be a temporary name, or in a folder of one.
absl::Status CopyFile(FileSystem& files, const std::string& from, const std::string& to);

// Whether the file or folder of this path below the copied folder ("a", "a/b") is left out.
using LeaveOut = std::function<bool(std::string_view path)>;

// Copies a folder and all in it, but what `leave_out` says and files of temporary names; files and
// folders are synced. `to` is made with its parents. FAILED_PRECONDITION when folders are nested
// deeper than any export has them.
absl::Status CopyFolder(FileSystem& files, const std::string& from, const std::string& to,
                        const LeaveOut& leave_out = {});

}  // namespace muster::io
