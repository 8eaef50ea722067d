// Writes the folder of an export, atomically.
#pragma once

#include <functional>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::model {

// Calls `write`, which fills a folder with a temporary name (it creates the folder and its parents
// and syncs the files); then renames the folder to `folder` and syncs the parent. ALREADY_EXISTS if
// `folder` exists. After an error nothing is left. Errors begin with "exporting FOLDER".
absl::Status WriteExportFolder(io::FileSystem& files, const std::string& folder,
                               const std::function<absl::Status(const std::string&)>& write);

}  // namespace muster::model
