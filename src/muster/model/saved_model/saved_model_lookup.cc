#include "muster/model/saved_model/saved_model_lookup.h"

#include "muster/base/strings.h"

namespace muster::model {
namespace {

using features::Combiner;
using formats::BoolAttr;
using formats::DataType;
using formats::GraphDefBuilder;
using formats::TypeAttr;

// Appends a last dimension of 1.
std::string ExpandLast(const std::string& name, const std::string& tensor, DataType type,
                       GraphDefBuilder* graph) {
  return graph->Node(name, "ExpandDims", {tensor, graph->Int32(StrCat(name, "/dim"), -1)},
                     {TypeAttr("T", type), TypeAttr("Tdim", DataType::kInt32)});
}

// Applies tf.clip_by_norm over the last dimension.
std::string ClipRows(const std::string& name, const std::string& rows, double max_norm,
                     GraphDefBuilder* graph) {
  const std::string limit = graph->Float(StrCat(name, "/max_norm"), static_cast<float>(max_norm));
  const std::string squares = SumSquares(name, rows, graph);
  const std::string norm = FloatNode(StrCat(name, "/Sqrt"), "Sqrt", {squares}, graph);
  return FloatNode(StrCat(name, "/truediv"), "RealDiv",
                   {FloatNode(StrCat(name, "/mul"), "Mul", {rows, limit}, graph),
                    FloatNode(StrCat(name, "/Maximum"), "Maximum", {norm, limit}, graph)},
                   graph);
}

// Sums [batch, n, columns] to [batch, columns].
std::string SumOverList(const std::string& name, const std::string& values,
                        GraphDefBuilder* graph) {
  return graph->Node(name, "Sum", {values, graph->Int32(StrCat(name, "/axis"), 1)},
                     {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32)});
}

}  // namespace

std::string FloatNode(const std::string& name, std::string_view op,
                      std::initializer_list<std::string> inputs, GraphDefBuilder* graph) {
  return graph->Node(name, op, inputs, {TypeAttr("T", DataType::kFloat)});
}

std::string SumSquares(const std::string& name, const std::string& rows, GraphDefBuilder* graph) {
  return graph->Node(StrCat(name, "/Sum"), "Sum",
                     {FloatNode(StrCat(name, "/Square"), "Square", {rows}, graph),
                      graph->Int32(StrCat(name, "/axis"), -1)},
                     {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32),
                      BoolAttr("keep_dims", true)});
}

TableRows GatherRows(const std::string& name, const std::string& table, const GraphIds& ids,
                     double max_norm, GraphDefBuilder* graph) {
  const auto ints = [&](std::string_view op, int64_t operand) {
    const std::string node = StrCat(name, "/", op);
    return graph->Node(node, op, {ids.tensor, graph->Int64(StrCat(node, "/y"), operand)},
                       {TypeAttr("T", DataType::kInt64)});
  };
  std::string values =
      graph->Node(StrCat(name, "/rows"), "ResourceGather", {table, ints("Maximum", 0)},
                  {TypeAttr("dtype", DataType::kFloat), TypeAttr("Tindices", DataType::kInt64)});
  if (max_norm > 0) values = ClipRows(StrCat(name, "/clip_by_norm"), values, max_norm, graph);
  TableRows rows;
  rows.has_id = ints("GreaterEqual", 0);
  rows.mask = ExpandLast(StrCat(name, "/has_id"), rows.has_id, DataType::kBool, graph);
  rows.values = FloatNode(StrCat(name, "/masked"), "SelectV2",
                          {rows.mask, values, graph->Float(StrCat(name, "/zero"), 0)}, graph);
  return rows;
}

std::string CombineRows(const std::string& name, const TableRows& rows, const GraphIds& ids,
                        Combiner combiner, GraphDefBuilder* graph) {
  if (!ids.list && ids.weights.empty()) return rows.values;
  const auto floats = [&](std::string_view part, std::string_view op,
                          std::initializer_list<std::string> inputs) {
    return FloatNode(StrCat(name, "/", part), op, inputs, graph);
  };
  std::string values = rows.values;
  std::string factor;  // for each id, 0 where there is none; [batch, 1] or [batch, n, 1]
  const std::string zero = graph->Float(StrCat(name, "/no_weight"), 0);
  if (ids.weights.empty()) {
    factor = graph->Node(StrCat(name, "/ones"), "Cast", {rows.mask},
                         {TypeAttr("SrcT", DataType::kBool), TypeAttr("DstT", DataType::kFloat)});
  } else {
    const std::string all =
        ExpandLast(StrCat(name, "/all_weights"), ids.weights, DataType::kFloat, graph);
    factor = floats("weights", "SelectV2", {rows.mask, all, zero});
    if (combiner != Combiner::kSum) factor = floats("positive", "Maximum", {factor, zero});
    values = floats("weighted", "Mul", {values, factor});
  }
  const auto sum = [&](std::string_view part, const std::string& of) {
    return ids.list ? SumOverList(StrCat(name, "/", part), of, graph) : of;
  };
  const std::string total = sum("Sum", values);
  if (combiner == Combiner::kSum) return total;
  if (combiner == Combiner::kSqrtN) factor = floats("Square", "Square", {factor});
  std::string divisor = sum("count", factor);
  if (combiner == Combiner::kSqrtN) divisor = floats("Sqrt", "Sqrt", {divisor});
  return floats("DivNoNan", "DivNoNan", {total, divisor});
}

}  // namespace muster::model
