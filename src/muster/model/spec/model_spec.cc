#include "muster/model/spec/model_spec.h"

#include <algorithm>

#include "muster/base/nearest.h"
#include "muster/formats/yaml_reader.h"
#include "muster/model/spec/data_check.h"
#include "muster/model/spec/exported_spec.h"
#include "muster/model/spec/feature_parser.h"
#include "muster/model/spec/format_parser.h"
#include "muster/model/spec/head_parser.h"
#include "muster/model/spec/model_parser.h"

namespace muster::model {
namespace {

using features::ColumnSpec;
using formats::YamlReader;

constexpr const char* kSavedSpec = "model.yaml";
constexpr const char* kSavedExport = "exported";

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

absl::Status CheckModel(const ModelSpec& spec) {
  MUSTER_RETURN_IF_ERROR(features::Validate(spec.features));
  MUSTER_RETURN_IF_ERROR(CheckParts(spec));
  MUSTER_RETURN_IF_ERROR(CheckHead(spec));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> ParseModelSpec(io::FileSystem& files, std::string_view yaml,
                                         const std::string& name,
                                         std::span<const std::string> settings) {
  if (yaml.size() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(
        StrCat(name, ": ", yaml.size(), " bytes are too many: a model file has at most ",
               kMaxSpecBytes, " (put long vocabularies into a file: 'file: words.txt')"));
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

// Returns the folder of the exported Keras model whose model.json `path` is; "" if it is none.
std::string FindExport(io::FileSystem& files, const std::string& path) {
  if (io::Basename(path) != "model.json") return "";
  const std::string folder = io::Dirname(path);
  const bool is_export = files.Stat(io::JoinPath(folder, "weights.index")).ok();
  return is_export ? folder : "";
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
        path, " is a Keras file, which only Python can read: export the model there ",
        "with muster.keras.export(keras.models.load_model(...), optimizer, loss, \"exported\"",
        "), then train the folder that this has made (docs/keras.md)"));
  }
  if (const std::string folder = FindExport(files, path); !folder.empty()) {
    return absl::InvalidArgumentError(
        StrCat(path, " is a part of an exported Keras model, and no model file: give the folder ",
               folder));
  }
  const auto yaml = io::ReadFile(files, path, kMaxSpecBytes);
  auto spec = yaml.ok() ? ParseModelSpec(files, *yaml, path, settings) : yaml.status();
  if (!spec.ok() && LooksLikeData(files, path)) {
    return absl::InvalidArgumentError(DescribeDataAsModel(path));
  }
  return spec;
}

std::string_view ModelSpec::type() const {
  if (baseline) return "baseline";
  if (fm) return dnn ? "deepfm" : "fm";
  if (cross) return "dcn";
  if (towers) return "two_tower";
  if (dnn) return linear ? "wide_deep" : "dnn";
  return linear ? "linear" : "";
}

std::vector<std::string> ModelSpec::UsedColumns() const {
  std::vector<std::string> used;
  const auto add = [&used](const std::vector<std::string>& columns) {
    for (const std::string& name : columns) {
      if (std::ranges::find(used, name) == used.end()) used.push_back(name);
    }
  };
  if (linear) add(linear->columns);
  if (fm) add(fm->columns);
  for (const auto& [name, part] : DeepParts()) add(part->columns);
  return used;
}

std::vector<std::pair<std::string, const DnnSpec*>> ModelSpec::DeepParts() const {
  std::vector<std::pair<std::string, const DnnSpec*>> parts;
  if (dnn) parts.emplace_back("dnn", &*dnn);
  if (towers) parts.insert(parts.end(), {{"query", &towers->query}, {"item", &towers->item}});
  return parts;
}

bool ModelSpec::HasColumnOf(const std::string& input) const {
  return std::ranges::any_of(features.columns, [&input](const ColumnSpec& column) {
    return column.input == input || column.weights == input ||
           std::ranges::find(column.keys, input) != column.keys.end();
  });
}

std::vector<std::string> ModelSpec::LabelInputs() const {
  std::vector<std::string> inputs;
  for (const std::string& input : {features.label.input, features.weight}) {
    if (!input.empty() && !HasColumnOf(input) && input != features.key) inputs.push_back(input);
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

absl::Status UpdateSavedSpec(io::FileSystem& files, const ModelSpec& newest,
                             const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const ModelSpec there, LoadSavedSpec(files, folder));
  ModelSpec spec = there;
  spec.format = newest.format;
  if (!spec.exported) {
    spec.features.schema = newest.features.schema;
    spec.features.key = newest.features.key;
    spec.metrics = newest.metrics;
  }
  if (spec == there) return absl::OkStatus();
  if (spec.exported) return SaveExportedFormat(files, spec.format, folder);
  return SaveModelSpec(files, spec, folder);
}

}  // namespace muster::model
