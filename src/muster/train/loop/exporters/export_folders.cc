#include "muster/train/loop/exporters/export_folders.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace muster::train {
namespace {

constexpr size_t kDigits = 10;

std::string FolderName(int64_t seconds) { return absl::StrFormat("%010d", seconds); }

// Returns FOLDER/<10-digit seconds>: now, or one second after the newest export in FOLDER.
absl::StatusOr<std::string> NewExportFolder(io::FileSystem& files, const Clock& clock,
                                            const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports, GetExports(files, folder));
  auto seconds = static_cast<int64_t>(clock.WallSeconds());
  if (!exports.empty()) seconds = std::max(seconds, exports.back() + 1);
  return io::JoinPath(folder, FolderName(seconds));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> GetExports(io::FileSystem& files, const std::string& folder) {
  std::vector<int64_t> exports;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (absl::IsNotFound(names.status())) return exports;
  MUSTER_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    int64_t seconds = 0;
    const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
    if (name.size() == kDigits && digits && absl::SimpleAtoi(name, &seconds)) {
      exports.push_back(seconds);
    }
  }
  return exports;  // in order: List() sorts names, and all have ten digits
}

absl::StatusOr<std::string> MakeExport(const ExportContext& context, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(std::string folder, NewExportFolder(context.files, context.clock,
                                                              GetExportFolder(context, name)));
  MUSTER_RETURN_IF_ERROR(Annotate(context.export_model(folder), StrCat("exporter '", name, "'")));
  return folder;
}

absl::Status RemoveOldExports(const ExportContext& context, const std::string& name, int keep) {
  if (keep <= 0) return absl::OkStatus();
  const std::string folder = GetExportFolder(context, name);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> exports, GetExports(context.files, folder));
  for (size_t i = 0; i + keep < exports.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(context.files.RemoveAll(io::JoinPath(folder, FolderName(exports[i]))));
  }
  return absl::OkStatus();
}

absl::Status CheckKept(int exports_to_keep) {
  if (exports_to_keep >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("exports_to_keep, if provided, must be a positive number, given: ", exports_to_keep));
}

}  // namespace muster::train
