// Files of this machine, through POSIX calls.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

// OpenForRead gives the process's standard input under this name: front to back, by one owner; a
// read at another place is FAILED_PRECONDITION.
constexpr std::string_view kStandardInput = "/dev/stdin";

std::unique_ptr<FileSystem> NewLocalFileSystem();

}  // namespace muster::io
