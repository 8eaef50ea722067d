#include "muster/model/saved_model.h"

#include <limits>
#include <vector>

#include "muster/formats/bundle.h"
#include "muster/formats/graph_def.h"
#include "muster/model/saved_model_features.h"
#include "muster/model/saved_model_inputs.h"
#include "muster/model/saved_model_network.h"
#include "muster/model/saved_model_variables.h"

namespace muster::model {
namespace {

using formats::DataType;
using formats::GraphDefBuilder;
using formats::IntAttr;
using formats::Signature;
using formats::SignatureTensor;
using formats::TypeAttr;

constexpr std::string_view kPredict = "tensorflow/serving/predict";
constexpr std::string_view kClassify = "tensorflow/serving/classify";
constexpr std::string_view kRegress = "tensorflow/serving/regress";

// What the signatures give, tensors of the graph.
struct Predictions {
  std::string logits, logistic, probabilities, class_ids, classes, all_classes;

  std::vector<SignatureTensor> ForPredict() const {
    return {{"logits", logits, DataType::kFloat, {-1, 1}},
            {"logistic", logistic, DataType::kFloat, {-1, 1}},
            {"probabilities", probabilities, DataType::kFloat, {-1, 2}},
            {"class_ids", class_ids, DataType::kInt64, {-1, 1}},
            {"classes", classes, DataType::kString, {-1, 1}}};
  }
};

// The binary head, as tf.estimator's BinaryClassHead: class 1 when the logit is above 0.
Predictions AddHead(const ModelSpec& spec, const std::string& logits, const std::string& scope,
                    GraphDefBuilder* graph) {
  const std::string name = StrCat(scope, "head/predictions");
  const auto floats = TypeAttr("T", DataType::kFloat);
  const auto tdim = TypeAttr("Tdim", DataType::kInt32);
  Predictions out;
  out.logits = logits;
  out.logistic = graph->Node(StrCat(name, "/logistic"), "Sigmoid", {logits}, {floats});
  const std::string zeros =
      graph->Node(StrCat(name, "/zeros_like"), "ZerosLike", {logits}, {floats});
  const std::string last = graph->Int32(StrCat(name, "/axis"), -1);
  const std::string two_class =
      graph->Node(StrCat(name, "/two_class_logits"), "ConcatV2", {zeros, logits, last},
                  {floats, TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
  out.probabilities = graph->Node(StrCat(name, "/probabilities"), "Softmax", {two_class}, {floats});
  const std::string best = graph->Node(
      StrCat(name, "/ArgMax"), "ArgMax", {two_class, last},
      {floats, TypeAttr("Tidx", DataType::kInt32), TypeAttr("output_type", DataType::kInt64)});
  out.class_ids = graph->Node(StrCat(name, "/class_ids"), "ExpandDims", {best, last},
                              {TypeAttr("T", DataType::kInt64), tdim});

  const std::vector<std::string>& words = spec.features.label.words;
  const std::string names =
      graph->Strings(StrCat(name, "/class_names"),
                     words.empty() ? std::vector<std::string>{"0", "1"} : words, {2});
  out.classes =
      graph->Node(StrCat(name, "/classes"), "GatherV2",
                  {names, out.class_ids, graph->Int32(StrCat(name, "/classes/axis"), 0)},
                  {TypeAttr("Tparams", DataType::kString), TypeAttr("Tindices", DataType::kInt64),
                   TypeAttr("Taxis", DataType::kInt32)});
  const std::string shape = graph->Node(StrCat(name, "/Shape"), "Shape", {two_class},
                                        {floats, TypeAttr("out_type", DataType::kInt32)});
  out.all_classes =
      graph->Node(StrCat(name, "/all_classes"), "BroadcastTo", {names, shape},
                  {TypeAttr("T", DataType::kString), TypeAttr("Tidx", DataType::kInt32)});
  return out;
}

// What is written besides the variables.
struct Contents {
  std::string saved_model;
  std::vector<SavedModelTables::Asset> assets;
};

// The whole graph. Nodes on the way from serialized examples have tf.estimator's plain names; those
// from raw values are under "raw/". Variables and lookup tables are the same.
absl::StatusOr<Contents> MakeContents(const ModelSpec& spec,
                                      std::span<const engine::VariableSpec> variables) {
  GraphDefBuilder graph;
  SavedModelVariables variable_nodes(variables, &graph);
  SavedModelTables tables(&graph);
  const auto predictions = [&](const GraphInputs& inputs, const std::string& scope) {
    SavedModelFeatures features(spec.features, inputs, &tables, scope, &graph);
    return AddHead(spec, AddNetwork(spec, &features, &variable_nodes, scope, &graph), scope,
                   &graph);
  };
  const std::vector<const formats::Field*> fields = FieldsOf(spec);
  const GraphInputs examples = AddExampleInputs(fields, &graph);
  const GraphInputs raw = AddRawInputs(fields, &graph);
  const Predictions of_examples = predictions(examples, "");
  const Predictions of_raw = predictions(raw, "raw/");
  MUSTER_RETURN_IF_ERROR(variable_nodes.status());

  formats::MetaGraph meta;
  meta.tags = {"serve"};
  variable_nodes.AddSaver(&meta);
  std::vector<std::string> initializers;
  for (const std::string& op : tables.initializers()) initializers.push_back(StrCat("^", op));
  meta.init_op = graph.Node("init_all_tables", "NoOp", initializers);

  SignatureTensor serialized = examples.signature[0];
  meta.signatures.push_back(
      {"serving_default", std::string(kPredict), raw.signature, of_raw.ForPredict()});
  meta.signatures.push_back(
      {"predict", std::string(kPredict), {serialized}, of_examples.ForPredict()});
  serialized.name = "inputs";
  meta.signatures.push_back({"classification",
                             std::string(kClassify),
                             {serialized},
                             {{"classes", of_examples.all_classes, DataType::kString, {-1, 2}},
                              {"scores", of_examples.probabilities, DataType::kFloat, {-1, 2}}}});
  meta.signatures.push_back({"regression",
                             std::string(kRegress),
                             {serialized},
                             {{"outputs", of_examples.logistic, DataType::kFloat, {-1, 1}}}});
  for (const SavedModelTables::Asset& asset : tables.assets()) {
    meta.assets.push_back({asset.tensor, asset.filename});
  }
  meta.graph = graph.Encode();
  return Contents{formats::EncodeSavedModel(meta), tables.assets()};
}

absl::Status WriteVariables(io::FileSystem& files, const std::string& folder,
                            std::span<const engine::VariableSpec> variables,
                            std::span<const engine::VariableView> weights) {
  MUSTER_ASSIGN_OR_RETURN(auto writer,
                          formats::BundleWriter::Create(files, io::JoinPath(folder, "variables")));
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::string_view bytes(reinterpret_cast<const char*>(weights[i].data),
                                 static_cast<size_t>(variables[i].elements()) * sizeof(float));
    MUSTER_RETURN_IF_ERROR(
        writer->Add(variables[i].name, DataType::kFloat, variables[i].shape, bytes));
  }
  return writer->Finish();
}

absl::Status WriteFolder(io::FileSystem& files, const std::string& folder, const Contents& contents,
                         std::span<const engine::VariableSpec> variables,
                         std::span<const engine::VariableView> weights) {
  const std::string variables_folder = io::JoinPath(folder, "variables");
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(variables_folder));
  MUSTER_RETURN_IF_ERROR(WriteVariables(files, variables_folder, variables, weights));
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
        StrCat(weights.size(), " weights for ", variables.size(), " variables"));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (weights[i].rows * weights[i].cols == variables[i].elements()) continue;
    return absl::InvalidArgumentError(StrCat("variable '", variables[i].name, "' has ",
                                             variables[i].elements(), " elements, its weights ",
                                             weights[i].rows, " x ", weights[i].cols));
  }
  return absl::OkStatus();
}

// protobuf reads no message of 2 GiB or more.
absl::Status CheckSize(const std::string& saved_model) {
  if (saved_model.size() <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("saved_model.pb would have ", saved_model.size(),
             " bytes, TensorFlow reads less than 2 GiB; the vocabularies are too large"));
}

}  // namespace

absl::Status ExportSavedModel(io::FileSystem& files, const ModelSpec& spec,
                              std::span<const engine::VariableSpec> variables,
                              std::span<const engine::VariableView> weights,
                              const std::string& folder) {
  const std::string context = StrCat("exporting ", folder);
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto existing = files.Stat(path);
  if (existing.ok()) {
    return absl::AlreadyExistsError(
        StrCat(context, ": it exists already; give another folder or remove it"));
  }
  if (!absl::IsNotFound(existing.status())) return Annotate(existing.status(), context);
  if (spec.head.kind != engine::HeadKind::kBinary || spec.baseline) {
    return absl::UnimplementedError(
        StrCat(context, ": only binary linear, dnn and wide_deep models"));
  }
  MUSTER_RETURN_IF_ERROR(Annotate(CheckWeights(variables, weights), context));
  const auto contents = MakeContents(spec, variables);
  MUSTER_RETURN_IF_ERROR(Annotate(contents.status(), context));
  MUSTER_RETURN_IF_ERROR(Annotate(CheckSize(contents->saved_model), context));

  const std::string temporary = io::TemporaryPath(path);
  absl::Status status = files.RemoveAll(temporary);
  if (status.ok()) status = WriteFolder(files, temporary, *contents, variables, weights);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    files.RemoveAll(temporary).IgnoreError();
    return Annotate(status, context);
  }
  return Annotate(files.SyncFolder(io::Dirname(path)), context);
}

}  // namespace muster::model
