#include "muster/formats/graph_def.h"

#include <protozero/pbf_writer.hpp>

#include "muster/base/strings.h"

namespace muster::formats {
namespace {

using protozero::pbf_writer;

// Field numbers of the messages written here, by message.
namespace graph_field {
constexpr int kNode = 1, kVersions = 4;
constexpr int kProducer = 1, kMinConsumer = 2;  // VersionDef
}  // namespace graph_field
namespace node_field {
constexpr int kName = 1, kOp = 2, kInput = 3, kAttr = 5;
}  // namespace node_field
namespace attr_field {
constexpr int kList = 1, kString = 2, kInt = 3, kBool = 5, kType = 6, kShape = 7, kTensor = 8;
constexpr int kListFloats = 4, kListTypes = 6, kListShapes = 7;
}  // namespace attr_field
namespace tensor_field {
constexpr int kType = 1, kShape = 2, kContent = 4, kStrings = 8;
}  // namespace tensor_field
namespace meta_field {
constexpr int kInfo = 1, kGraph = 2, kSaver = 3, kCollection = 4, kSignature = 5, kAsset = 6;
constexpr int kInfoTag = 4, kInfoVersion = 5;
}  // namespace meta_field

constexpr int kMapKey = 1, kMapValue = 2;
// The versions that TensorFlow 2.15 writes: TF_GRAPH_DEF_VERSION, and the oldest consumer of
// resource variables.
constexpr int kGraphProducer = 1645, kGraphMinConsumer = 12;
constexpr std::string_view kTensorFlowVersion = "2.15.0";

void AddString(pbf_writer* message, int field, std::string_view text) {
  message->add_bytes(field, text.data(), text.size());
}

std::string EncodeShape(const GraphShape& shape) {
  std::string bytes;
  pbf_writer message(bytes);
  for (const int64_t size : shape) {
    pbf_writer dimension(message, 2);
    dimension.add_int64(1, size);
  }
  return bytes;
}

// Adds a map entry: one field of `message`.
void AddEntry(pbf_writer* message, int field, std::string_view key, std::string_view value) {
  pbf_writer entry(*message, field);
  AddString(&entry, kMapKey, key);
  AddString(&entry, kMapValue, value);
}

template <typename T>
std::string EncodeNumbers(DataType type, std::span<const T> values, const GraphShape& shape) {
  std::string bytes;
  pbf_writer message(bytes);
  message.add_enum(tensor_field::kType, static_cast<int>(type));
  message.add_message(tensor_field::kShape, EncodeShape(shape));
  message.add_bytes(tensor_field::kContent, reinterpret_cast<const char*>(values.data()),
                    values.size_bytes());
  return bytes;
}

// Returns "node:0" for "node", as a TensorInfo and a VariableDef need it.
std::string WithOutput(const std::string& tensor) {
  return tensor.find(':') == std::string::npos ? StrCat(tensor, ":0") : tensor;
}

std::string EncodeVariable(const GraphVariable& variable) {
  std::string bytes;
  pbf_writer message(bytes);
  AddString(&message, 1, WithOutput(variable.handle));
  AddString(&message, 2, variable.initializer);
  AddString(&message, 3, WithOutput(variable.snapshot));
  message.add_bool(5, true);  // is_resource
  AddString(&message, 6, WithOutput(variable.initial_value));
  message.add_bool(7, variable.trainable);
  return bytes;
}

// The fields of CollectionDef that are used here.
enum class CollectionKind { kNodeList = 1, kBytesList = 2 };

void AddCollection(pbf_writer* meta, std::string_view name, CollectionKind kind,
                   const std::vector<std::string>& values) {
  if (values.empty()) return;
  std::string list_bytes;
  pbf_writer list(list_bytes);
  for (const std::string& value : values) AddString(&list, 1, value);
  std::string bytes;
  pbf_writer collection(bytes);
  collection.add_message(static_cast<int>(kind), list_bytes);
  AddEntry(meta, meta_field::kCollection, name, bytes);
}

void AddCollections(pbf_writer* meta, const MetaGraph& graph) {
  std::vector<std::string> variables;
  std::vector<std::string> trainable;
  for (const GraphVariable& variable : graph.variables) {
    variables.push_back(EncodeVariable(variable));
    if (variable.trainable) trainable.push_back(variables.back());
  }
  AddCollection(meta, "variables", CollectionKind::kBytesList, variables);
  AddCollection(meta, "trainable_variables", CollectionKind::kBytesList, trainable);
  AddCollection(meta, "table_initializer", CollectionKind::kNodeList, {graph.init_op});
  AddCollection(meta, "saved_model_main_op", CollectionKind::kNodeList, {graph.init_op});
  std::vector<std::string> assets;
  for (const AssetFile& asset : graph.assets) assets.push_back(WithOutput(asset.tensor));
  AddCollection(meta, "asset_filepaths", CollectionKind::kNodeList, assets);
}

void AddSignature(pbf_writer* meta, const Signature& signature) {
  std::string bytes;
  pbf_writer message(bytes);
  const auto add = [&](int field, const std::vector<SignatureTensor>& tensors) {
    for (const SignatureTensor& tensor : tensors) {
      std::string info_bytes;
      pbf_writer info(info_bytes);
      AddString(&info, 1, WithOutput(tensor.tensor));
      info.add_enum(2, static_cast<int>(tensor.type));
      info.add_message(3, EncodeShape(tensor.shape));
      AddEntry(&message, field, tensor.name, info_bytes);
    }
  };
  add(1, signature.inputs);
  add(2, signature.outputs);
  AddString(&message, 3, signature.method);
  AddEntry(meta, meta_field::kSignature, signature.name, bytes);
}

void AddSaver(pbf_writer* meta, const MetaGraph& graph) {
  constexpr int kCheckpointV2 = 2;
  pbf_writer saver(*meta, meta_field::kSaver);
  AddString(&saver, 1, WithOutput(graph.saver_filename_tensor));
  AddString(&saver, 2, WithOutput(graph.saver_save_tensor));
  AddString(&saver, 3, graph.saver_restore_op);
  saver.add_int32(4, 5);         // max_to_keep
  saver.add_float(6, 10000.0f);  // keep_checkpoint_every_n_hours
  saver.add_enum(7, kCheckpointV2);
}

bool IsNameByte(char c, bool first) {
  const bool alphanumeric =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  return alphanumeric || (!first && (c == '_' || c == '-' || c == '/'));
}

GraphAttr MakeAttr(std::string_view name, std::string value) {
  return {std::string(name), std::move(value)};
}

}  // namespace

GraphAttr TypeAttr(std::string_view name, DataType type) {
  std::string bytes;
  pbf_writer(bytes).add_enum(attr_field::kType, static_cast<int>(type));
  return MakeAttr(name, std::move(bytes));
}

GraphAttr IntAttr(std::string_view name, int64_t value) {
  std::string bytes;
  pbf_writer(bytes).add_int64(attr_field::kInt, value);
  return MakeAttr(name, std::move(bytes));
}

GraphAttr BoolAttr(std::string_view name, bool value) {
  std::string bytes;
  pbf_writer(bytes).add_bool(attr_field::kBool, value);
  return MakeAttr(name, std::move(bytes));
}

GraphAttr StringAttr(std::string_view name, std::string_view value) {
  std::string bytes;
  pbf_writer(bytes).add_bytes(attr_field::kString, value.data(), value.size());
  return MakeAttr(name, std::move(bytes));
}

GraphAttr ShapeAttr(std::string_view name, const GraphShape& shape) {
  std::string bytes;
  pbf_writer(bytes).add_message(attr_field::kShape, EncodeShape(shape));
  return MakeAttr(name, std::move(bytes));
}

GraphAttr TypesAttr(std::string_view name, std::span<const DataType> types) {
  std::vector<int32_t> numbers;
  for (const DataType type : types) numbers.push_back(static_cast<int32_t>(type));
  std::string list;
  pbf_writer(list).add_packed_enum(attr_field::kListTypes, numbers.begin(), numbers.end());
  std::string bytes;
  pbf_writer(bytes).add_message(attr_field::kList, list);
  return MakeAttr(name, std::move(bytes));
}

GraphAttr FloatsAttr(std::string_view name, std::span<const float> values) {
  std::string list;
  pbf_writer(list).add_packed_float(attr_field::kListFloats, values.begin(), values.end());
  std::string bytes;
  pbf_writer(bytes).add_message(attr_field::kList, list);
  return MakeAttr(name, std::move(bytes));
}

GraphAttr ShapesAttr(std::string_view name, std::span<const GraphShape> shapes) {
  std::string list;
  pbf_writer message(list);
  for (const GraphShape& shape : shapes) {
    message.add_message(attr_field::kListShapes, EncodeShape(shape));
  }
  std::string bytes;
  pbf_writer(bytes).add_message(attr_field::kList, list);
  return MakeAttr(name, std::move(bytes));
}

std::string GraphDefBuilder::Node(std::string_view name, std::string_view op,
                                  std::span<const std::string> inputs,
                                  std::span<const GraphAttr> attrs) {
  std::string legal(name);
  for (size_t i = 0; i < legal.size(); ++i) {
    if (!IsNameByte(legal[i], i == 0)) legal[i] = i == 0 ? '.' : '_';
  }
  if (legal.empty()) legal = ".";
  std::string unique = legal;
  for (int i = 1; !names_.insert(unique).second; ++i) unique = StrCat(legal, "_", i);

  pbf_writer graph(nodes_);
  pbf_writer node(graph, graph_field::kNode);
  AddString(&node, node_field::kName, unique);
  AddString(&node, node_field::kOp, op);
  for (const std::string& input : inputs) AddString(&node, node_field::kInput, input);
  for (const GraphAttr& attr : attrs) AddEntry(&node, node_field::kAttr, attr.name, attr.value);
  return unique;
}

std::string GraphDefBuilder::Const(std::string_view name, DataType type,
                                   const std::string& tensor) {
  std::string value;
  pbf_writer(value).add_message(attr_field::kTensor, tensor);
  return Node(name, "Const", std::span<const std::string>(),
              {TypeAttr("dtype", type), {"value", std::move(value)}});
}

std::string GraphDefBuilder::Floats(std::string_view name, std::span<const float> values,
                                    const GraphShape& shape) {
  return Const(name, DataType::kFloat, EncodeNumbers(DataType::kFloat, values, shape));
}

std::string GraphDefBuilder::Int32s(std::string_view name, std::span<const int32_t> values,
                                    const GraphShape& shape) {
  return Const(name, DataType::kInt32, EncodeNumbers(DataType::kInt32, values, shape));
}

std::string GraphDefBuilder::Int64s(std::string_view name, std::span<const int64_t> values,
                                    const GraphShape& shape) {
  return Const(name, DataType::kInt64, EncodeNumbers(DataType::kInt64, values, shape));
}

std::string GraphDefBuilder::Strings(std::string_view name, std::span<const std::string> values,
                                     const GraphShape& shape) {
  std::string tensor;
  pbf_writer message(tensor);
  message.add_enum(tensor_field::kType, static_cast<int>(DataType::kString));
  message.add_message(tensor_field::kShape, EncodeShape(shape));
  for (const std::string& value : values) AddString(&message, tensor_field::kStrings, value);
  return Const(name, DataType::kString, tensor);
}

std::string GraphDefBuilder::Bool(std::string_view name, bool value) {
  const char byte = value ? 1 : 0;
  return Const(name, DataType::kBool, EncodeNumbers<char>(DataType::kBool, {&byte, 1}, {}));
}

std::string GraphDefBuilder::Encode() const {
  std::string versions;
  pbf_writer message(versions);
  message.add_int32(graph_field::kProducer, kGraphProducer);
  message.add_int32(graph_field::kMinConsumer, kGraphMinConsumer);
  std::string bytes = nodes_;
  pbf_writer(bytes).add_message(graph_field::kVersions, versions);
  return bytes;
}

std::string EncodeSavedModel(const MetaGraph& graph) {
  std::string meta_bytes;
  pbf_writer meta(meta_bytes);
  {
    pbf_writer info(meta, meta_field::kInfo);
    for (const std::string& tag : graph.tags) AddString(&info, meta_field::kInfoTag, tag);
    AddString(&info, meta_field::kInfoVersion, kTensorFlowVersion);
  }
  meta.add_message(meta_field::kGraph, graph.graph);
  AddSaver(&meta, graph);
  AddCollections(&meta, graph);
  for (const Signature& signature : graph.signatures) AddSignature(&meta, signature);
  for (const AssetFile& asset : graph.assets) {
    pbf_writer file(meta, meta_field::kAsset);
    {
      pbf_writer info(file, 1);
      AddString(&info, 1, WithOutput(asset.tensor));
    }
    AddString(&file, 2, asset.filename);
  }
  std::string bytes;
  pbf_writer saved_model(bytes);
  saved_model.add_int64(1, 1);  // saved_model_schema_version
  saved_model.add_message(2, meta_bytes);
  return bytes;
}

}  // namespace muster::formats
