#include "muster/model/saved_model/saved_model.h"

#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "muster/engine/heads/head_nodes.h"
#include "muster/engine/predictions.h"
#include "muster/formats/bundle.h"
#include "muster/formats/graph_def.h"
#include "muster/model/keras/export_folder.h"
#include "muster/model/saved_model/saved_model_features.h"
#include "muster/model/saved_model/saved_model_inputs.h"
#include "muster/model/saved_model/saved_model_network.h"
#include "muster/model/saved_model/saved_model_variables.h"

namespace muster::model {
namespace {

using formats::DataType;
using formats::GraphDefBuilder;
using formats::SignatureTensor;

constexpr std::string_view kPredict = "tensorflow/serving/predict";
constexpr std::string_view kClassify = "tensorflow/serving/classify";
constexpr std::string_view kRegress = "tensorflow/serving/regress";

// What is written in addition to the variables.
struct Contents {
  std::string saved_model;
  std::vector<SavedModelTables::Asset> assets;
};

// Adds the signature of one tower: the inputs that it reads, and its vector.
void AddTower(const ModelSpec& spec, const std::string& name, const DnnSpec& tower,
              const GraphInputs& inputs, const engine::HeadOutputs& outputs,
              formats::MetaGraph* meta) {
  std::set<std::string> columns, fields;
  for (const std::string& column : tower.columns) {
    spec.features.CollectUses(column, &columns, &fields);
  }
  std::vector<SignatureTensor> used, vector;
  for (const SignatureTensor& input : inputs.signature) {
    if (fields.contains(input.name)) used.push_back(input);
  }
  for (const SignatureTensor& output : outputs.predict) {
    if (output.name == name) vector.push_back(output);
  }
  meta->signatures.push_back({name, std::string(kPredict), used, vector});
}

// Makes the whole graph. Nodes that follow from serialized examples have tf.estimator's plain
// names; those that follow from raw values are under "raw/". Variables and lookup tables are
// shared.
absl::StatusOr<Contents> MakeContents(const ModelSpec& spec,
                                      std::span<const engine::VariableSpec> variables,
                                      const DynamicKeys& dynamic_tables) {
  GraphDefBuilder graph;
  SavedModelVariables variable_nodes(variables, &graph);
  SavedModelTables tables(&graph, dynamic_tables);
  const auto predictions = [&](const GraphInputs& inputs, const std::string& scope) {
    SavedModelFeatures features(spec.features, inputs, &tables, scope, &graph);
    const Network network =
        AddNetwork(spec, inputs.signature, &features, &variable_nodes, scope, &graph);
    const engine::Predictor predictor(spec.head, spec.features.label.words);
    engine::HeadOutputs outputs =
        engine::AddHead(spec.head, predictor.class_names(), network.logits, scope, &graph);
    for (SignatureTensor& output : outputs.predict) {
      if (output.name == "query" && spec.towers) output.tensor = network.query;
      if (output.name == "item" && spec.towers) output.tensor = network.item;
    }
    return outputs;
  };
  const std::vector<UsedField> fields = GetFields(spec);
  const GraphInputs examples = AddExampleInputs(fields, &graph);
  // A baseline model reads no field; it gets the number of rows from any field that it is given.
  std::vector<UsedField> raw_fields = fields;
  const formats::Field* const any = spec.features.AnyInput();
  if (raw_fields.empty() && any != nullptr) raw_fields.push_back({.field = any});
  const GraphInputs raw = AddRawInputs(raw_fields, &graph);
  const engine::HeadOutputs of_examples = predictions(examples, "");
  const engine::HeadOutputs of_raw = raw.signature.empty() ? of_examples : predictions(raw, "raw/");
  MUSTER_RETURN_IF_ERROR(variable_nodes.status());

  formats::MetaGraph meta;
  meta.tags = {"serve"};
  variable_nodes.AddSaver(&meta);
  std::vector<std::string> initializers;
  for (const std::string& op : tables.initializers()) initializers.push_back(StrCat("^", op));
  meta.init_op = graph.Node("init_all_tables", "NoOp", initializers);

  SignatureTensor serialized = examples.signature[0];
  meta.signatures.push_back({"serving_default", std::string(kPredict),
                             raw.signature.empty() ? examples.signature : raw.signature,
                             of_raw.predict});
  meta.signatures.push_back({"predict", std::string(kPredict), {serialized}, of_examples.predict});
  serialized.name = "inputs";
  if (!of_examples.classes.empty()) {
    meta.signatures.push_back(
        {"classification", std::string(kClassify), {serialized}, of_examples.classes});
  }
  if (!of_examples.regress.empty()) {
    meta.signatures.push_back(
        {"regression", std::string(kRegress), {serialized}, of_examples.regress});
  }
  if (spec.towers) {
    AddTower(spec, "query", spec.towers->query, raw, of_raw, &meta);
    AddTower(spec, "item", spec.towers->item, raw, of_raw, &meta);
  }
  for (const SavedModelTables::Asset& asset : tables.assets()) {
    meta.assets.push_back({asset.tensor, asset.filename});
  }
  meta.graph = graph.Encode();
  return Contents{formats::EncodeSavedModel(meta), tables.assets()};
}

absl::Status WriteVariables(io::FileSystem& files, const std::string& folder,
                            std::span<const engine::VariableSpec> variables,
                            std::span<const engine::VariableView> weights,
                            std::optional<int64_t> step) {
  MUSTER_ASSIGN_OR_RETURN(auto writer,
                          formats::BundleWriter::Create(files, io::JoinPath(folder, "variables")));
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::string_view bytes(reinterpret_cast<const char*>(weights[i].data),
                                 static_cast<size_t>(variables[i].elements()) * sizeof(float));
    MUSTER_RETURN_IF_ERROR(
        writer->Add(variables[i].name, DataType::kFloat, variables[i].shape, bytes));
  }
  if (step) {
    MUSTER_RETURN_IF_ERROR(writer->Add("global_step", DataType::kInt64, {},
                                       {reinterpret_cast<const char*>(&*step), sizeof *step}));
  }
  return writer->Finish();
}

absl::Status WriteFolder(io::FileSystem& files, const std::string& folder, const Contents& contents,
                         std::span<const engine::VariableSpec> variables,
                         std::span<const engine::VariableView> weights,
                         std::optional<int64_t> step) {
  const std::string variables_folder = io::JoinPath(folder, "variables");
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(variables_folder));
  MUSTER_RETURN_IF_ERROR(WriteVariables(files, variables_folder, variables, weights, step));
  MUSTER_RETURN_IF_ERROR(files.SyncFolder(variables_folder));
  const std::string assets_folder = io::JoinPath(folder, "assets");
  if (!contents.assets.empty()) MUSTER_RETURN_IF_ERROR(files.MakeFolders(assets_folder));
  for (const SavedModelTables::Asset& asset : contents.assets) {
    MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(
        files, io::JoinPath(assets_folder, asset.filename), asset.contents));
  }
  return io::WriteFileAtomically(files, io::JoinPath(folder, "saved_model.pb"),
                                 contents.saved_model);
}

absl::Status CheckWeights(std::span<const engine::VariableSpec> variables,
                          std::span<const engine::VariableView> weights) {
  if (variables.size() != weights.size()) {
    return absl::InvalidArgumentError(
        StrCat(weights.size(), " weights were given for ", variables.size(), " variables"));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (weights[i].rows * weights[i].cols == variables[i].elements()) continue;
    return absl::InvalidArgumentError(
        StrCat("variable '", variables[i].name, "' has ", variables[i].elements(),
               " elements, but its weights are ", weights[i].rows, " x ", weights[i].cols));
  }
  return absl::OkStatus();
}

// protobuf reads no message of 2 GiB or more.
absl::Status CheckSize(const std::string& saved_model) {
  if (saved_model.size() <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      "saved_model.pb would have ", saved_model.size(),
      " bytes, but TensorFlow reads less than 2 GiB; the vocabularies, or the keys of tables "
      "that grow, are too large"));
}

}  // namespace

absl::Status ExportSavedModel(io::FileSystem& files, const ModelSpec& spec,
                              std::span<const engine::VariableSpec> variables,
                              std::span<const engine::VariableView> weights,
                              const std::string& folder,
                              std::span<const std::span<const int64_t>> dynamic_keys,
                              std::optional<int64_t> step) {
  // Values that counted as missing in the training data also count as missing in requests.
  ModelSpec served = spec;
  served.features.schema = formats::WithMissing(spec.features.schema, spec.format);
  // Variables of tables that grow get as many rows as they have keys.
  std::vector<engine::VariableSpec> sized(variables.begin(), variables.end());
  DynamicKeys keys;
  for (size_t i = 0; i < dynamic_keys.size() && i < sized.size(); ++i) {
    if (!sized[i].growth) continue;
    sized[i].shape[0] = std::ssize(dynamic_keys[i]) + 1;
    keys[sized[i].name] = dynamic_keys[i];
  }
  return WriteExportFolder(files, folder, [&](const std::string& temporary) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(CheckWeights(sized, weights));
    MUSTER_ASSIGN_OR_RETURN(const Contents contents, MakeContents(served, sized, keys));
    MUSTER_RETURN_IF_ERROR(CheckSize(contents.saved_model));
    return WriteFolder(files, temporary, contents, sized, weights, step);
  });
}

}  // namespace muster::model
