#include "muster/score/exported_weights.h"

#include <vector>

#include "muster/formats/bundle.h"
#include "muster/model/keras/exported_saved_model.h"
#include "muster/train/weights/dynamic_tables.h"

namespace muster::score {

bool IsExport(io::FileSystem& files, const std::string& checkpoint) {
  return !checkpoint.empty() && files.Stat(io::JoinPath(checkpoint, "saved_model.pb")).ok();
}

std::string FindBundle(io::FileSystem& files, const std::string& checkpoint) {
  return IsExport(files, checkpoint) ? io::JoinPath(checkpoint, "variables/variables") : checkpoint;
}

absl::StatusOr<checkpoint::Restored> RestoreExport(io::FileSystem& files,
                                                   const model::ModelSpec& spec,
                                                   const std::string& folder,
                                                   std::span<const checkpoint::Tensor> tensors) {
  if (train::HasDynamicTables(spec)) {
    return absl::UnimplementedError(
        StrCat(folder,
               " is an export: the keys of a table that grows cannot be read from it; give "
               "--checkpoint a checkpoint of --model-dir, or best"));
  }
  std::vector<checkpoint::Tensor> named(tensors.begin(), tensors.end());
  if (spec.exported) {
    for (checkpoint::Tensor& tensor : named) {
      tensor.name = model::ServingKey(*spec.exported, tensor.name);
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const auto bundle,
                          formats::BundleReader::Open(files, FindBundle(files, folder)));
  MUSTER_RETURN_IF_ERROR(Annotate(checkpoint::Restore(*bundle, named), folder));
  checkpoint::Restored restored;
  restored.prefix = folder;
  if (bundle->tensors().contains("global_step")) {
    MUSTER_ASSIGN_OR_RETURN(restored.step, checkpoint::GlobalStep(*bundle));
  }
  return restored;
}

}  // namespace muster::score
