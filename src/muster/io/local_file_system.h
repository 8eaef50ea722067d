// Files on this machine, through POSIX calls; "file:///PATH" is PATH, any other scheme is refused.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

// OpenForRead opens the process's standard input under this name, to be read sequentially by one
// owner; a read at another offset is FAILED_PRECONDITION.
constexpr std::string_view kStandardInput = "/dev/stdin";

std::unique_ptr<FileSystem> NewLocalFileSystem();

}  // namespace muster::io
