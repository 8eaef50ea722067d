// Sequences and their pooling as nodes of a TensorFlow graph.
#include <limits>

#include "muster/model/saved_model/saved_model_features.h"

namespace muster::model {
namespace {

using features::ColumnSpec;
using features::Pooling;
using formats::BoolAttr;
using formats::DataType;
using formats::GraphDefBuilder;
using formats::IntAttr;
using formats::TypeAttr;

// Writes the nodes that pool one sequence; their names begin with `name`.
class PoolingWriter {
 public:
  PoolingWriter(std::string name, GraphDefBuilder* graph)
      : name_(std::move(name)), graph_(*graph) {}

  // Reduces over the steps, axis 1.
  std::string Reduce(std::string_view part, std::string_view op, const std::string& values,
                     DataType type) {
    return graph_.Node(
        Name(part), op, {values, graph_.Int32(Name(StrCat(part, "/axis")), 1)},
        {TypeAttr("T", type), TypeAttr("Tidx", DataType::kInt32), BoolAttr("keep_dims", false)});
  }

  std::string Expanded(std::string_view part, const std::string& tensor, DataType type) {
    return graph_.Node(Name(part), "ExpandDims",
                       {tensor, graph_.Int32(Name(StrCat(part, "/dim")), -1)},
                       {TypeAttr("T", type), TypeAttr("Tdim", DataType::kInt32)});
  }

  // Selects `values` [batch, n, width] where `here` [batch, n] is true, `other` elsewhere.
  std::string Where(std::string_view part, const std::string& here, const std::string& values,
                    float other) {
    const std::string mask = Expanded(StrCat(part, "/here"), here, DataType::kBool);
    return graph_.Node(Name(part), "SelectV2",
                       {mask, values, graph_.Float(Name(StrCat(part, "/other")), other)},
                       {TypeAttr("T", DataType::kFloat)});
  }

  std::string AsInts(const std::string& present) {
    return graph_.Node(Name("ones"), "Cast", {present},
                       {TypeAttr("SrcT", DataType::kBool), TypeAttr("DstT", DataType::kInt32)});
  }

  // Returns whether a step is the last one of its row.
  std::string IsLast(const std::string& present, const std::string& ones,
                     const std::string& count) {
    const std::string number =
        graph_.Node(Name("number"), "Cumsum", {ones, graph_.Int32(Name("number/axis"), 1)},
                    {TypeAttr("T", DataType::kInt32), TypeAttr("Tidx", DataType::kInt32)});
    const std::string at_end = graph_.Node(
        Name("at_end"), "Equal", {number, Expanded("count_column", count, DataType::kInt32)},
        {TypeAttr("T", DataType::kInt32)});
    return graph_.Node(Name("is_last"), "LogicalAnd", {at_end, present});
  }

  std::string Name(std::string_view part) const { return StrCat(name_, "/", part); }

 private:
  std::string name_;
  GraphDefBuilder& graph_;
};

}  // namespace

std::string PooledSteps(const std::string& name, const std::string& steps,
                        const std::string& present, Pooling pooling, GraphDefBuilder* graph) {
  PoolingWriter writer(name, graph);
  const std::string ones = writer.AsInts(present);
  const std::string count = writer.Reduce("count", "Sum", ones, DataType::kInt32);
  if (pooling == Pooling::kMax) {
    const float lowest = std::numeric_limits<float>::lowest();
    const std::string largest = writer.Reduce(
        "Max", "Max", writer.Where("steps", present, steps, lowest), DataType::kFloat);
    const std::string any =
        graph->Node(writer.Name("any"), "Greater", {count, graph->Int32(writer.Name("none"), 0)},
                    {TypeAttr("T", DataType::kInt32)});
    return writer.Where("largest", any, largest, 0);
  }
  const std::string here =
      pooling == Pooling::kLast ? writer.IsLast(present, ones, count) : present;
  const std::string sum =
      writer.Reduce("Sum", "Sum", writer.Where("steps", here, steps, 0), DataType::kFloat);
  if (pooling != Pooling::kMean && pooling != Pooling::kSqrtN) return sum;
  std::string divisor = graph->Node(
      writer.Name("divisor"), "Cast", {writer.Expanded("count_column", count, DataType::kInt32)},
      {TypeAttr("SrcT", DataType::kInt32), TypeAttr("DstT", DataType::kFloat)});
  if (pooling == Pooling::kSqrtN) {
    divisor =
        graph->Node(writer.Name("Sqrt"), "Sqrt", {divisor}, {TypeAttr("T", DataType::kFloat)});
  }
  return graph->Node(writer.Name("DivNoNan"), "DivNoNan", {sum, divisor},
                     {TypeAttr("T", DataType::kFloat)});
}

// Reshapes [batch, n] values to [batch, n / shape, shape] and pools them. Values that do not make
// whole steps make the request fail.
std::string SavedModelFeatures::SequenceNumeric(const ColumnSpec& column) {
  const GraphInput& input = inputs_.by_field.at(column.input);
  const std::string scaled = Scaled(column, input);
  const std::vector<int32_t> step = {1, column.shape};
  const std::vector<int32_t> width = {column.shape};
  const std::string size =
      graph_.Node(GetName(column, "size"), "Shape", {scaled},
                  {TypeAttr("T", DataType::kFloat), TypeAttr("out_type", DataType::kInt32)});
  const std::string steps = graph_.Node(GetName(column, "num_steps"), "FloorDiv",
                                        {size, graph_.Int32s(GetName(column, "step"), step, {2})},
                                        {TypeAttr("T", DataType::kInt32)});
  const std::string shape = graph_.Node(
      GetName(column, "shape"), "ConcatV2",
      {steps, graph_.Int32s(GetName(column, "width"), width, {1}),
       graph_.Int32(GetName(column, "shape/axis"), 0)},
      {TypeAttr("T", DataType::kInt32), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
  const auto reshaped = [&](std::string_view part, const std::string& tensor, DataType type) {
    return graph_.Node(GetName(column, part), "Reshape", {tensor, shape},
                       {TypeAttr("T", type), TypeAttr("Tshape", DataType::kInt32)});
  };
  const std::string values = reshaped("steps", scaled, DataType::kFloat);
  const std::string whole = graph_.Node(GetName(column, "present"), "All",
                                        {reshaped("present_steps", input.present, DataType::kBool),
                                         graph_.Int32(GetName(column, "present/axis"), 2)},
                                        {TypeAttr("Tidx", DataType::kInt32)});
  return PooledSteps(GetName(column, "pooled"), values, whole, column.pooling, &graph_);
}

}  // namespace muster::model
