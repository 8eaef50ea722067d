// The folder that an export makes: whole, or not there.
#pragma once

#include <functional>
#include <string>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::model {

// Lets `write` fill a folder of a temporary name (which it makes, with its parents, and whose
// files it syncs), which then is renamed to `folder` and its parent synced. ALREADY_EXISTS when
// `folder` exists; after an error nothing is left. Errors begin with "exporting FOLDER".
absl::Status WriteExportFolder(io::FileSystem& files, const std::string& folder,
                               const std::function<absl::Status(const std::string&)>& write);

}  // namespace muster::model
