// TensorFlow graphs as bytes: GraphDef, and a SavedModel that contains one, written with protozero.
// docs/formats/saved_model.md; sources: tensorflow/core/framework/{graph,node_def,attr_value,
// tensor,tensor_shape}.proto, tensorflow/core/protobuf/{meta_graph,saved_model,saver}.proto.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/formats/bundle.h"

namespace muster::formats {

// Dimensions; -1 stands for any size. A scalar has none.
using GraphShape = std::vector<int64_t>;

// One attribute of a node: its name and an encoded AttrValue.
struct GraphAttr {
  std::string name;
  std::string value;
};
GraphAttr TypeAttr(std::string_view name, DataType type);
GraphAttr IntAttr(std::string_view name, int64_t value);
GraphAttr BoolAttr(std::string_view name, bool value);
GraphAttr StringAttr(std::string_view name, std::string_view value);
GraphAttr ShapeAttr(std::string_view name, const GraphShape& shape);
GraphAttr TypesAttr(std::string_view name, std::span<const DataType> types);
GraphAttr FloatsAttr(std::string_view name, std::span<const float> values);
GraphAttr ShapesAttr(std::string_view name, std::span<const GraphShape> shapes);

// Collects nodes. A tensor is named as in NodeDef: "node" is the node's first output, "node:2" its
// third; "^node" in an input list is a control edge. Nodes may name inputs that are added later.
class GraphDefBuilder {
 public:
  // Adds a node and returns its name: `name` with '_' in place of each byte that TensorFlow does
  // not allow in a node's name, and with "_1", "_2", ... appended if it is taken.
  std::string Node(std::string_view name, std::string_view op, std::span<const std::string> inputs,
                   std::span<const GraphAttr> attrs = {});
  std::string Node(std::string_view name, std::string_view op, std::span<const std::string> inputs,
                   std::initializer_list<GraphAttr> attrs) {
    return Node(name, op, inputs, std::span(attrs.begin(), attrs.size()));
  }
  std::string Node(std::string_view name, std::string_view op,
                   std::initializer_list<std::string> inputs,
                   std::initializer_list<GraphAttr> attrs = {}) {
    return Node(name, op, std::span(inputs.begin(), inputs.size()), attrs);
  }

  // Add Const nodes. The shape {} is a scalar.
  std::string Floats(std::string_view name, std::span<const float> values, const GraphShape& shape);
  std::string Int32s(std::string_view name, std::span<const int32_t> values,
                     const GraphShape& shape);
  std::string Int64s(std::string_view name, std::span<const int64_t> values,
                     const GraphShape& shape);
  std::string Strings(std::string_view name, std::span<const std::string> values,
                      const GraphShape& shape);
  std::string Bool(std::string_view name, bool value);
  std::string Float(std::string_view name, float value) { return Floats(name, {&value, 1}, {}); }
  std::string Int32(std::string_view name, int32_t value) { return Int32s(name, {&value, 1}, {}); }
  std::string Int64(std::string_view name, int64_t value) { return Int64s(name, {&value, 1}, {}); }

  // Returns the GraphDef, with the versions that TensorFlow 2.15 writes.
  std::string Encode() const;

 private:
  std::string Const(std::string_view name, DataType type, const std::string& tensor);

  std::set<std::string, std::less<>> names_;
  std::string nodes_;  // GraphDef.node fields, encoded
};

// An input or output of a signature. `tensor` is "node" or "node:i".
struct SignatureTensor {
  std::string name;
  std::string tensor;
  DataType type = DataType::kFloat;
  GraphShape shape;
};

struct Signature {
  std::string name;
  std::string method;  // "tensorflow/serving/predict", ".../classify", ".../regress"
  std::vector<SignatureTensor> inputs;
  std::vector<SignatureTensor> outputs;
};

// A file in assets/ whose path is fed to `tensor` when the model is loaded.
struct AssetFile {
  std::string tensor;
  std::string filename;
};

struct GraphVariable {
  std::string handle;       // names of nodes: VarHandleOp,
  std::string initializer;  // the op that assigns the initial value,
  std::string snapshot;     // ReadVariableOp,
  std::string initial_value;
  bool trainable = true;
};

// The contents of a MetaGraphDef other than the graph.
struct MetaGraph {
  std::vector<std::string> tags;
  std::string graph;  // GraphDefBuilder::Encode()
  std::string saver_filename_tensor, saver_save_tensor, saver_restore_op;
  std::vector<GraphVariable> variables;
  std::string init_op;  // runs after the variables are restored: fills lookup tables
  std::vector<Signature> signatures;
  std::vector<AssetFile> assets;
};

// Returns the bytes of saved_model.pb: a SavedModel (schema version 1) with this single graph.
std::string EncodeSavedModel(const MetaGraph& graph);

}  // namespace muster::formats
