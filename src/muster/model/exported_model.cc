#include "muster/model/exported_model.h"

#include <algorithm>
#include <utility>

#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/files/file_systems.h"
#include "muster/io/copy.h"
#include "muster/model/export_folder.h"
#include "muster/model/keras_optimizer.h"
#include "muster/process/child.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasColumn;
using engine::tensorflow::KerasExport;
using formats::DataType;
using formats::ValueType;

constexpr int kKerasBatchSize = 32;  // of Model.fit

}  // namespace

features::RawColumnSpecs GetRawColumns(const KerasExport& model) {
  features::RawColumnSpecs columns = {
      .inputs = model.inputs, .labels = model.labels, .key = model.key};
  if (model.sample_weight) columns.labels.push_back(*model.sample_weight);
  return columns;
}

absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(KerasExport model, engine::tensorflow::OpenKerasExport(files, folder));
  ModelSpec spec;
  auto schema = features::RawSchema(GetRawColumns(model), /*with_labels=*/true, /*with_key=*/true);
  if (!schema.ok()) return Annotate(schema.status(), folder);
  spec.features.schema = *std::move(schema);
  if (!model.labels.empty()) spec.features.label.input = model.labels[0].feature;
  if (model.key) spec.features.key = model.key->feature;
  MUSTER_ASSIGN_OR_RETURN(const KerasOptimizer optimizer, ParseKerasOptimizer(model));
  spec.clip_gradients = optimizer.clip;
  spec.train.batch_size = kKerasBatchSize;
  spec.exported = std::make_shared<const KerasExport>(std::move(model));
  return spec;
}

absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder) {
  return WriteExportFolder(files, folder, [&](const std::string& temporary) {
    return io::CopyFolder(files, spec.exported->folder, temporary);
  });
}

std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b) {
  if (!a.exported || !b.exported)
    return "one is of a model file, the other an exported Keras model";
  const KerasExport &one = *a.exported, &other = *b.exported;
  if (one.checksum == other.checksum) return "";
  return StrCat("the model.json of ", one.folder, " and ", other.folder, " differ");
}

absl::StatusOr<Model> BuildExported(const ModelSpec& spec, const BuildOptions& options) {
  const KerasExport& exported = *spec.exported;
  if (options.native.training == engine::Precision::kBfloat16 ||
      options.native.inference == engine::Precision::kBfloat16) {
    return absl::InvalidArgumentError(
        "--precision is for models of a model file: an exported model computes in what its Keras "
        "policy says (mixed_bfloat16)");
  }
  if (options.native.sub_batches_are_replicas) {
    return absl::InvalidArgumentError(
        "--replicas-per-task is for models of a model file: of an exported model each replica is a "
        "task (--workers), and --threads are those of one operation");
  }
  Model model;
  model.spec = spec;
  model.files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(KerasOptimizer optimizer, ParseKerasOptimizer(exported));
  const int threads = options.native.threads;
  std::vector<std::string> environment = process::CurrentEnvironment();
  // Each replica applies it by itself, to the same bytes: with threads TensorFlow adds repeated
  // rows of a table up in any order, unless it is told.
  if (optimizer.applies) environment.emplace_back("TF_DETERMINISTIC_OPS=1");
  MUSTER_ASSIGN_OR_RETURN(
      model.engine, engine::tensorflow::NewTensorFlowEngine(
                        *model.files, exported,
                        {.threads = threads,
                         .executor = threads > 1 ? engine::tensorflow::Executor::kDefault
                                                 : engine::tensorflow::Executor::kSingleThreaded,
                         .tensorflow = options.tensorflow,
                         .environment = std::move(environment),
                         .groups = optimizer.groups,
                         .start_at_once = false}));
  model.applies = optimizer.applies;
  model.rate = std::move(optimizer.rate);
  model.optimizer_specs = std::move(optimizer.specs);
  for (const optim::OptimizerSpec& each : model.optimizer_specs) {
    MUSTER_ASSIGN_OR_RETURN(auto built, optim::NewOptimizer(each));
    model.optimizers.push_back(std::move(built));
  }
  return model;
}

absl::StatusOr<std::vector<engine::PredictionTensor>> GetPredictions(const KerasExport& model) {
  std::vector<engine::PredictionTensor> tensors;
  for (const KerasColumn& column : model.predictions) {
    engine::PredictionTensor& tensor = tensors.emplace_back();
    tensor.name = column.name;
    const auto width = formats::ElementCount(column.shape);
    // Of any length: what a batch has.
    tensor.width = width && std::in_range<int>(*width) ? static_cast<int>(*width) : 0;
    auto type = engine::PredictionType(column.type);
    if (!type.ok()) return Annotate(type.status(), StrCat("prediction ", column.name));
    tensor.type = *type;
  }
  return tensors;
}

}  // namespace muster::model
