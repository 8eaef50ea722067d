// A file system plugin for TensorFlow: what TensorFlow's programs do with paths of some schemes is
// done by a FileClient. main.cc makes the library of it that TensorFlow loads.
//
// Differences from TensorFlow's own file systems: a file that is written makes its missing folders;
// a file that was opened before a fork is refused in the new process; what TensorFlow can do by
// other operations (copying, patterns) is left to it. As TensorFlow's own HDFS did, hdfs://default/
// means the name node of the configuration.
#pragma once

#include <string>
#include <vector>

#include "muster/files/tensorflow/file_client.h"
#include "muster/files/tensorflow/filesystem_interface.h"

namespace muster::files {

// Fills in what TensorFlow asks a plugin for. `client` and `set_status` serve all plugins of this
// process from now on.
void FillPlugin(FileClient& client, TF_SetStatusFunction* set_status,
                const std::vector<std::string>& schemes, TF_FilesystemPluginInfo* info);

}  // namespace muster::files
