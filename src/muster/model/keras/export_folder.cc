#include "muster/model/keras/export_folder.h"

namespace muster::model {

absl::Status WriteExportFolder(io::FileSystem& files, const std::string& folder,
                               const std::function<absl::Status(const std::string&)>& write) {
  const std::string context = StrCat("exporting ", folder);
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto existing = files.Stat(path);
  if (existing.ok()) {
    return absl::AlreadyExistsError(
        StrCat(context, ": it exists already; give another folder or remove it"));
  }
  if (!absl::IsNotFound(existing.status())) return Annotate(existing.status(), context);
  const std::string temporary = io::TemporaryPath(path);
  absl::Status status = files.RemoveAll(temporary);
  if (status.ok()) status = write(temporary);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    files.RemoveAll(temporary).IgnoreError();
    return Annotate(status, context);
  }
  return Annotate(files.SyncFolder(io::Dirname(path)), context);
}

}  // namespace muster::model
