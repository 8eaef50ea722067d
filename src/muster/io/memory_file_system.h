// Files in memory, for tests. Thread-safe.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

// Starts with an empty folder "/"; relative paths start there too, so that "a" and "/a" are the
// same file. modified_ns counts the changes of the file: no clock is read.
std::unique_ptr<FileSystem> NewMemoryFileSystem();

}  // namespace muster::io
