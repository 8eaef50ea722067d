#include "muster/train/input/changed_data.h"

#include "muster/base/strings.h"
#include "muster/data/source_set.h"

namespace muster::train {

absl::StatusOr<std::string> MakeChangedDataWarning(io::FileSystem& files,
                                                   const data::SourceSpec& source,
                                                   const std::string& checkpoint) {
  const auto saved = files.Stat(StrCat(checkpoint, ".index"));
  if (absl::IsNotFound(saved.status())) return "";
  MUSTER_RETURN_IF_ERROR(saved.status());
  std::string first;
  int more = 0;
  MUSTER_ASSIGN_OR_RETURN(const auto items, data::ListSources(files, source));
  for (const data::SourceItem& item : items) {
    if (item.modified_ns <= saved->modified_ns) continue;
    if (first.empty()) {
      first = item.name;
    } else {
      ++more;
    }
  }
  if (first.empty()) return "";
  return StrCat(first, more > 0 ? StrCat(" and ", more, " more files of the data") : "",
                " changed after ", checkpoint,
                " was saved; training continues at the same position in ",
                "the changed data; give --fresh-data to begin at its start");
}

}  // namespace muster::train
