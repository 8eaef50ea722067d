// Files on this machine, through POSIX calls; "file:///PATH" is PATH, any other scheme is refused.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

// OpenForRead opens the process's standard input under this name, to be read sequentially by one
// owner; a read at another offset is FAILED_PRECONDITION.
constexpr std::string_view kStandardInput = "/dev/stdin";

// Returns a file system without state of its own: all objects see the same files, and any number
// may be used at once, from any thread. Files that it creates may be read and written by everybody
// whom the umask of the process allows. Paths with a scheme other than "file" are INVALID_ARGUMENT.
std::unique_ptr<FileSystem> NewLocalFileSystem();

}  // namespace muster::io
