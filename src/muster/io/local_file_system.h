// Files of this machine, through POSIX calls.
#pragma once

#include "muster/io/file_system.h"

namespace muster::io {

std::unique_ptr<FileSystem> NewLocalFileSystem();

}  // namespace muster::io
