// Copies of files and folders within a FileSystem.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::io {

// Copies a file in pieces, whatever its size, and syncs the copy. `to` is replaced; its folder
// exists. A failure leaves a partial copy: `to` should be a temporary name, or in a folder with
// one.
absl::Status CopyFile(FileSystem& files, const std::string& from, const std::string& to);

// Whether to leave out the file or folder at this path below the copied folder ("a", "a/b").
using LeaveOut = std::function<bool(std::string_view path)>;

// Copies a folder and all in it, except what `leave_out` selects and files with temporary names;
// files and folders are synced. `to` is made with its parents. FAILED_PRECONDITION if folders are
// nested deeper than in any export.
absl::Status CopyFolder(FileSystem& files, const std::string& from, const std::string& to,
                        const LeaveOut& leave_out = {});

}  // namespace muster::io
