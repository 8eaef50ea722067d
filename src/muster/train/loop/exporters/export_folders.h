// The folders of exporters, MODEL_DIR/export/NAME, in which each export is named by its second.
// Internal to this room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/loop/exporter.h"

namespace muster::train {

// Returns the seconds that name the exports in a folder, oldest first.
absl::StatusOr<std::vector<int64_t>> GetExports(io::FileSystem& files, const std::string& folder);

// Writes the context's model as the newest export of the exporter `name`, and returns its folder.
absl::StatusOr<std::string> MakeExport(const ExportContext& context, const std::string& name);

// Removes all but the newest `keep` exports of `name`; 0: none.
absl::Status RemoveOldExports(const ExportContext& context, const std::string& name, int keep);

// INVALID_ARGUMENT for a negative number.
absl::Status CheckKept(int exports_to_keep);

}  // namespace muster::train
