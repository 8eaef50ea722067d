#include "muster/score/inference.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/score/exported_weights.h"

namespace muster::score {
namespace {

absl::StatusOr<checkpoint::Restored> Restore(io::FileSystem& files, const model::ModelSpec& spec,
                                             const WeightsSource& source,
                                             std::span<const checkpoint::Tensor> tensors) {
  if (source.checkpoint.empty()) return checkpoint::RestoreLatest(files, source.model_dir, tensors);
  if (IsExport(files, source.checkpoint)) {
    return RestoreExport(files, spec, source.checkpoint, tensors);
  }
  return checkpoint::RestorePrefix(files, source.checkpoint, tensors);
}

}  // namespace

absl::StatusOr<model::ModelSpec> LoadModelDir(io::FileSystem& files, const std::string& model_dir) {
  if (model::HasSavedSpec(files, model_dir)) return model::LoadSavedSpec(files, model_dir);
  if (IsExport(files, model_dir)) {
    return absl::NotFoundError(
        StrCat(model_dir,
               " is an export, which does not say what its columns read: give the folder "
               "the model was trained in as --model-dir, and the export as --checkpoint"));
  }
  return absl::NotFoundError(StrCat(model_dir, " is no model folder: it has no model.yaml and no ",
                                    "exported/; give --model-dir as it was given to ",
                                    "'muster train'"));
}

bool IsUntrained(std::string_view prefix) { return io::Basename(prefix) == "model.ckpt-0"; }

absl::Status CheckTrained(const checkpoint::Found& found) {
  if (found.broken.empty() || !IsUntrained(found.prefix)) return absl::OkStatus();
  return absl::DataLossError(StrCat("besides ", found.prefix,
                                    ", whose weights are untrained, no checkpoint is intact; ",
                                    "put back a copy of one: ", absl::StrJoin(found.broken, "; ")));
}

absl::StatusOr<checkpoint::Restored> LoadWeights(io::FileSystem& files,
                                                 const model::ModelSpec& spec,
                                                 const WeightsSource& source,
                                                 const train::Variables& variables) {
  const std::vector<checkpoint::Tensor> tensors = variables.Tensors(/*with_slots=*/false);
  MUSTER_ASSIGN_OR_RETURN(checkpoint::Restored restored, Restore(files, spec, source, tensors));
  MUSTER_RETURN_IF_ERROR(CheckTrained({restored.prefix, restored.broken}));
  if (!source.fall_back) {
    MUSTER_RETURN_IF_ERROR(checkpoint::CheckNewest({restored.prefix, restored.broken}));
  }
  MUSTER_RETURN_IF_ERROR(variables.CheckDynamic());
  return restored;
}

std::shared_ptr<const train::KeyIndex> ForwardPass::IndexKeys(const model::ModelSpec& spec,
                                                              const train::Variables& variables) {
  if (!train::HasDynamicTables(spec)) return nullptr;
  return std::make_shared<const train::KeyIndex>(variables);
}

absl::StatusOr<ForwardPass> ForwardPass::Create(const model::Model& model,
                                                const train::Variables& variables,
                                                std::shared_ptr<const train::KeyIndex> index) {
  ForwardPass pass(*model.engine, variables);
  if (index != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(pass.dynamic_tables_,
                            train::DynamicTables::ForInference(model, variables, std::move(index)));
  }
  return pass;
}

absl::Status ForwardPass::Freeze() { return engine_->Freeze(variables_->views()); }

absl::Status ForwardPass::Run(const features::FeatureBatch& batch, engine::Forward* out) {
  if (dynamic_tables_ == nullptr) return engine_->Predict(variables_->views(), batch, out);
  MUSTER_ASSIGN_OR_RETURN(const features::FeatureBatch* const renumbered,
                          dynamic_tables_->Renumber(batch));
  return engine_->Predict(dynamic_tables_->views(), *renumbered, out);
}

}  // namespace muster::score
