// Files on this machine that only their owner may read.
#pragma once

#include <memory>

#include "muster/io/file_system.h"

namespace muster::io {

// As NewLocalFileSystem(); the files that it makes have mode 0600.
std::unique_ptr<FileSystem> NewPrivateFileSystem();

}  // namespace muster::io
