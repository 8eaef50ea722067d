#include "muster/train/input/changed_data.h"

#include "muster/base/strings.h"

namespace muster::train {

absl::StatusOr<std::string> WarningOfChangedData(io::FileSystem& files,
                                                 const std::vector<std::string>& patterns,
                                                 const std::string& checkpoint) {
  const auto saved = files.Stat(StrCat(checkpoint, ".index"));
  if (absl::IsNotFound(saved.status())) return "";
  MUSTER_RETURN_IF_ERROR(saved.status());
  std::string first;
  int more = 0;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, io::Glob(files, pattern));
    for (const std::string& path : paths) {
      MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(path));
      if (info.modified_ns <= saved->modified_ns) continue;
      if (first.empty()) {
        first = path;
      } else {
        ++more;
      }
    }
  }
  if (first.empty()) return "";
  return StrCat(first, more > 0 ? StrCat(" and ", more, " more files of the data") : "",
                " changed after ", checkpoint, " was saved; training goes on at the same place of ",
                "the data as it is now, --fresh-data begins it anew");
}

}  // namespace muster::train
