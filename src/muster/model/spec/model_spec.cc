#include "muster/model/spec/model_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "muster/base/nearest.h"
#include "muster/formats/yaml_reader.h"
#include "muster/model/spec/exported_spec.h"
#include "muster/model/spec/feature_parser.h"
#include "muster/model/spec/format_parser.h"
#include "muster/model/spec/head_parser.h"
#include "muster/model/spec/optimizer_parser.h"

namespace muster::model {
namespace {

using features::ColumnSpec;

constexpr uint64_t kMaxSpecBytes = uint64_t{1} << 20;
constexpr double kHuge = 1e30;
constexpr const char* kSavedSpec = "model.yaml";
constexpr const char* kSavedExport = "exported";

// The optimizers of tf.estimator's canned models (V2), which a part without one gets.
optim::OptimizerSpec DefaultOf(std::string_view kind, double learning_rate) {
  optim::OptimizerSpec spec = optim::DefaultOptimizer(kind);
  spec.learning_rate = learning_rate;
  return spec;
}

BaselineSpec ParseBaseline(const YamlReader& model) {
  BaselineSpec baseline;
  baseline.optimizer = DefaultOf("ftrl", 0.3);
  if (model.Has("optimizer")) baseline.optimizer = ParseOptimizer(model.At("optimizer"));
  return baseline;
}

LinearSpec ParseLinear(const YamlReader& node, bool with_dnn) {
  node.CheckKeys({"columns", "optimizer"});
  LinearSpec linear;
  linear.columns = node.At("columns").AsStrings();
  const double columns = std::max(1.0, static_cast<double>(linear.columns.size()));
  linear.optimizer = DefaultOf("ftrl", std::min(with_dnn ? 0.005 : 0.2, 1 / std::sqrt(columns)));
  if (node.Has("optimizer")) linear.optimizer = ParseOptimizer(node.At("optimizer"));
  return linear;
}

DnnSpec ParseDnn(const YamlReader& node, bool with_linear) {
  node.CheckKeys({"columns", "hidden_units", "activation", "dropout", "batch_norm",
                  "input_batch_norm", "synchronized_batch_norm", "l1", "l2", "embedding_l1",
                  "embedding_l2", "optimizer"});
  DnnSpec dnn;
  dnn.optimizer = DefaultOf("adagrad", with_linear ? 0.001 : 0.05);
  dnn.columns = node.At("columns").AsStrings();
  const YamlReader hidden = node.At("hidden_units");
  for (const std::string& text : hidden.AsStrings()) {
    int units = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), units);
    if (result.ptr != text.data() + text.size() || units < 1 || units > (1 << 20)) {
      hidden.Fail(StrCat("'", text, "' is not a number of units (1 to 1048576)"));
    }
    dnn.hidden_units.push_back(units);
  }
  const std::vector<std::string> activations = {"relu", "tanh", "sigmoid", "linear"};
  dnn.activation = node.String("activation", "relu");
  if (node.ok() && Nearest(dnn.activation, activations) != dnn.activation) {
    node.Fail(StrCat("unknown activation '", dnn.activation, "'",
                     DidYouMean(dnn.activation, activations)));
  }
  dnn.dropout = node.Number("dropout", 0, 0, 0.999);
  dnn.batch_norm = node.Bool("batch_norm", false);
  dnn.input_batch_norm = node.Bool("input_batch_norm", false);
  dnn.synchronized_batch_norm = node.Bool("synchronized_batch_norm", false);
  if (dnn.synchronized_batch_norm && !dnn.batch_norm && !dnn.input_batch_norm) {
    node.Fail("synchronized_batch_norm: give batch_norm or input_batch_norm with it");
  }
  dnn.l1 = node.Number("l1", 0, 0, kHuge);
  dnn.l2 = node.Number("l2", 0, 0, kHuge);
  dnn.embedding_l1 = node.Number("embedding_l1", 0, 0, kHuge);
  dnn.embedding_l2 = node.Number("embedding_l2", 0, 0, kHuge);
  if (node.Has("optimizer")) dnn.optimizer = ParseOptimizer(node.At("optimizer"));
  return dnn;
}

void ParseModel(const YamlReader& node, ModelSpec* spec) {
  node.CheckKeys({"type", "linear", "dnn", "optimizer", "clip_gradients"});
  const std::vector<std::string> types = {"baseline", "linear", "dnn", "wide_deep"};
  const YamlReader type_node = node.At("type");
  const std::string type = type_node.AsString();
  if (!node.ok()) return;
  if (std::ranges::find(types, type) == types.end()) {
    return type_node.Fail(StrCat("unknown model '", type, "'", DidYouMean(type, types)));
  }
  const bool is_baseline = type == "baseline";
  const bool wants_linear = type == "linear" || type == "wide_deep";
  const bool wants_dnn = type == "dnn" || type == "wide_deep";
  if (node.Has("linear") && !wants_linear) {
    return node.Fail(StrCat("a ", type, " model has no 'linear' part"));
  }
  if (node.Has("dnn") && !wants_dnn) {
    return node.Fail(StrCat("a ", type, " model has no 'dnn' part"));
  }
  if (node.Has("optimizer") && !is_baseline) {
    return node.Fail(
        StrCat("'optimizer' goes into the 'linear' or 'dnn' part of a ", type, " model"));
  }
  if (is_baseline) spec->baseline = ParseBaseline(node);
  if (wants_linear) spec->linear = ParseLinear(node.At("linear"), wants_dnn);
  if (wants_dnn) spec->dnn = ParseDnn(node.At("dnn"), wants_linear);
  if (node.Has("clip_gradients")) spec->clip_gradients = ParseClip(node.At("clip_gradients"));
}

void ParseTrain(const YamlReader& node, TrainDefaults* train) {
  node.CheckKeys({"batch_size", "epochs", "seed", "shuffle", "precision"});
  train->batch_size = static_cast<int>(node.Int("batch_size", train->batch_size, 1, 1 << 24));
  train->epochs = node.Int("epochs", train->epochs, 1, int64_t{1} << 40);
  if (node.Has("seed")) train->seed = node.At("seed").AsSeed();
  train->shuffle = node.Bool("shuffle", train->shuffle);
  const std::vector<std::string> precisions = {"fp32", "bf16"};
  const std::string precision = node.String("precision", "fp32");
  if (node.ok() && precision != "fp32" && precision != "bf16") {
    return node.At("precision")
        .Fail(StrCat("unknown precision '", precision, "'", DidYouMean(precision, precisions)));
  }
  if (precision == "bf16") train->precision = engine::Precision::kBfloat16;
}

// Every name that a model part uses must be a column of the right sort, once.
absl::Status CheckPart(const ModelSpec& spec, std::string_view part,
                       const std::vector<std::string>& columns) {
  if (columns.empty()) return absl::InvalidArgumentError(StrCat("model.", part, " has no columns"));
  std::vector<std::string> known;
  for (const ColumnSpec& column : spec.features.columns) known.push_back(column.name);
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec* column = spec.features.Find(columns[i]);
    const std::string what = StrCat("model.", part, ".columns: '", columns[i], "'");
    if (column == nullptr) {
      return absl::InvalidArgumentError(
          StrCat(what, " is no column", DidYouMean(columns[i], known)));
    }
    if (part == "dnn" && column->is_categorical()) {
      return absl::InvalidArgumentError(
          StrCat(what, " gives ids; wrap it in an 'indicator' or 'embedding' column"));
    }
    if (part == "linear" && column->kind == features::ColumnKind::kEmbedding) {
      return absl::InvalidArgumentError(
          StrCat(what, " is an embedding; a linear model takes the categorical column '",
                 column->input, "' itself"));
    }
    if (part == "dnn" && column->kind == features::ColumnKind::kEmbedding &&
        spec.features.GetGrowth(*spec.features.Find(column->input)) != nullptr &&
        (spec.dnn->embedding_l1 != 0 || spec.dnn->embedding_l2 != 0)) {
      return absl::InvalidArgumentError(
          StrCat(what, " has a table that grows: leave embedding_l1 and embedding_l2 out, which ",
                 "want every row of a table at every step, or give '", column->input,
                 "' a size ('hash')"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (columns[j] == columns[i]) {
        return absl::InvalidArgumentError(StrCat(what, " is listed twice"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(features::Validate(spec.features));
  if (spec.linear) MUSTER_RETURN_IF_ERROR(CheckPart(spec, "linear", spec.linear->columns));
  if (spec.dnn) MUSTER_RETURN_IF_ERROR(CheckPart(spec, "dnn", spec.dnn->columns));
  MUSTER_RETURN_IF_ERROR(CheckHead(spec));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> ParseModelSpec(io::FileSystem& files, std::string_view yaml,
                                         const std::string& name,
                                         std::span<const std::string> settings) {
  if (yaml.size() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(
        StrCat(name, ": ", yaml.size(), " bytes; a model file has at most ", kMaxSpecBytes,
               " (put long vocabularies into a file: 'file: words.txt')"));
  }
  MUSTER_ASSIGN_OR_RETURN(YamlReader root, YamlReader::Parse(yaml, name));
  for (const std::string& setting : settings) MUSTER_RETURN_IF_ERROR(root.Set(setting));
  root.CheckKeys({"inputs", "label", "weight", "key", "columns", "model", "head", "loss_reduction",
                  "metrics", "train", "format"});
  ModelSpec spec;
  spec.features = ParseFeatures(files, root, io::Dirname(name));
  if (root.ok()) ParseModel(root.At("model"), &spec);
  if (root.ok()) ParseHead(root, &spec);
  if (root.Has("train")) ParseTrain(root.At("train"), &spec.train);
  if (root.Has("format")) spec.format = ParseDataFormat(root.At("format"));
  MUSTER_RETURN_IF_ERROR(root.status());
  MUSTER_RETURN_IF_ERROR(Annotate(CheckModel(spec), name));
  return spec;
}

absl::StatusOr<ModelSpec> LoadModelSpec(io::FileSystem& files, const std::string& path,
                                        std::span<const std::string> settings) {
  const auto info = files.Stat(path);
  if (info.ok() && info->is_folder && !settings.empty()) {
    return absl::InvalidArgumentError(
        StrCat("'", settings.front(), "' cannot be set: ", path,
               " is an exported Keras model; change the model in Python and export it again"));
  }
  if (info.ok() && info->is_folder) return LoadExportedSpec(files, path);
  if (path.ends_with(".keras") || path.ends_with(".h5") || path.ends_with(".hdf5")) {
    return absl::InvalidArgumentError(StrCat(
        path, " is a file of Keras's, which only Python can read: there, export the model ",
        "with muster.keras.export(keras.models.load_model(...), optimizer, loss, \"exported\"",
        "), then train the folder that this makes (docs/keras.md)"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string yaml, io::ReadFile(files, path, 2 * kMaxSpecBytes));
  return ParseModelSpec(files, yaml, path, settings);
}

std::vector<std::string> ModelSpec::LabelInputs() const {
  std::vector<std::string> inputs;
  for (const std::string& input : {features.label.input, features.weight}) {
    const bool is_used = std::ranges::any_of(features.columns, [&input](const ColumnSpec& column) {
      return column.input == input || column.weights == input ||
             std::ranges::find(column.keys, input) != column.keys.end();
    });
    if (!input.empty() && !is_used && input != features.key) inputs.push_back(input);
  }
  return inputs;
}

bool HasSavedSpec(io::FileSystem& files, const std::string& folder) {
  return files.Stat(io::JoinPath(folder, kSavedSpec)).ok() ||
         files.Stat(io::JoinPath(folder, kSavedExport)).ok();
}

absl::Status RemoveSavedSpec(io::FileSystem& files, const std::string& folder) {
  const absl::Status removed = files.Remove(io::JoinPath(folder, kSavedSpec));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  MUSTER_RETURN_IF_ERROR(SaveExportedFormat(files, {}, folder));
  return files.RemoveAll(io::JoinPath(folder, kSavedExport));
}

absl::StatusOr<ModelSpec> LoadSavedSpec(io::FileSystem& files, const std::string& folder) {
  const std::string exported = io::JoinPath(folder, kSavedExport);
  if (!files.Stat(exported).ok()) return LoadModelSpec(files, io::JoinPath(folder, kSavedSpec));
  MUSTER_ASSIGN_OR_RETURN(ModelSpec spec, LoadExportedSpec(files, exported));
  MUSTER_ASSIGN_OR_RETURN(spec.format, LoadExportedFormat(files, folder));
  return spec;
}

absl::Status SaveDataFormat(io::FileSystem& files, const formats::DataFormat& format,
                            const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(ModelSpec spec, LoadSavedSpec(files, folder));
  if (spec.format == format) return absl::OkStatus();
  if (spec.exported) return SaveExportedFormat(files, format, folder);
  spec.format = format;
  return SaveModelSpec(files, spec, folder);
}

}  // namespace muster::model
