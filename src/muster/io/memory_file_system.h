// Files in memory, for tests. Thread-safe.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

std::unique_ptr<FileSystem> NewMemoryFileSystem();

}  // namespace muster::io
