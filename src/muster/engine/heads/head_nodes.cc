#include "muster/engine/heads/head_nodes.h"

#include <numeric>
#include <utility>

#include "muster/base/strings.h"
#include "muster/engine/heads/head_kind.h"

namespace muster::engine {
namespace {

using formats::DataType;
using formats::IntAttr;
using formats::TypeAttr;

formats::GraphAttr FloatType() { return TypeAttr("T", DataType::kFloat); }

}  // namespace

HeadNodes::HeadNodes(std::vector<std::string> class_names, std::string logits,
                     const std::string& scope, formats::GraphDefBuilder* graph)
    : class_names_(std::move(class_names)),
      logits_(std::move(logits)),
      name_(StrCat(scope, "head/predictions")),
      graph_(*graph) {}

std::string HeadNodes::Floats(std::string_view name, std::string_view op,
                              std::initializer_list<std::string> inputs) {
  return graph_.Node(StrCat(name_, "/", name), op, inputs, {FloatType()});
}

std::string HeadNodes::Concat(std::string_view name, const std::string& a, const std::string& b) {
  return graph_.Node(StrCat(name_, "/", name), "ConcatV2", {a, b, LastAxis()},
                     {FloatType(), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
}

std::string HeadNodes::Columns(std::string_view name, const std::string& matrix, int64_t first,
                               int64_t count) {
  const std::string node = StrCat(name_, "/", name);
  const std::vector<int64_t> begin = {0, first}, size = {-1, count};
  return graph_.Node(node, "Slice",
                     {matrix, graph_.Int64s(StrCat(node, "/begin"), begin, {2}),
                      graph_.Int64s(StrCat(node, "/size"), size, {2})},
                     {FloatType(), TypeAttr("Index", DataType::kInt64)});
}

std::string HeadNodes::SumOfColumns(std::string_view name, const std::string& matrix) {
  return graph_.Node(
      StrCat(name_, "/", name), "Sum", {matrix, LastAxis()},
      {FloatType(), TypeAttr("Tidx", DataType::kInt32), formats::BoolAttr("keep_dims", true)});
}

std::string HeadNodes::ClassNamesInEachRow(std::string_view name, const std::string& shape_of) {
  return ForEachRow(name, ClassNames(), DataType::kString, shape_of);
}

const std::string& HeadNodes::LastAxis() {
  if (last_axis_.empty()) last_axis_ = graph_.Int32(StrCat(name_, "/axis"), -1);
  return last_axis_;
}

const std::string& HeadNodes::ClassNames() {
  if (names_node_.empty()) {
    names_node_ = graph_.Strings(StrCat(name_, "/class_names"), class_names_, {classes()});
  }
  return names_node_;
}

void HeadNodes::AddClasses(const std::string& scores, const std::string& probabilities,
                           HeadOutputs* out) {
  const std::string best = graph_.Node(
      StrCat(name_, "/ArgMax"), "ArgMax", {scores, LastAxis()},
      {FloatType(), TypeAttr("Tidx", DataType::kInt32), TypeAttr("output_type", DataType::kInt64)});
  const std::string ids =
      graph_.Node(StrCat(name_, "/class_ids"), "ExpandDims", {best, LastAxis()},
                  {TypeAttr("T", DataType::kInt64), TypeAttr("Tdim", DataType::kInt32)});
  const std::string words =
      graph_.Node(StrCat(name_, "/classes"), "GatherV2",
                  {ClassNames(), ids, graph_.Int32(StrCat(name_, "/classes/axis"), 0)},
                  {TypeAttr("Tparams", DataType::kString), TypeAttr("Tindices", DataType::kInt64),
                   TypeAttr("Taxis", DataType::kInt32)});
  std::vector<int32_t> numbers(class_names_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::string all_ids = ForEachRow(
      "all_class_ids", graph_.Int32s(StrCat(name_, "/class_numbers"), numbers, {classes()}),
      DataType::kInt32, probabilities);
  const std::string all_words = ClassNamesInEachRow("all_classes", probabilities);
  out->predict.push_back({"class_ids", ids, DataType::kInt64, {-1, 1}});
  out->predict.push_back({"classes", words, DataType::kString, {-1, 1}});
  out->predict.push_back({"all_class_ids", all_ids, DataType::kInt32, {-1, classes()}});
  out->predict.push_back({"all_classes", all_words, DataType::kString, {-1, classes()}});
  out->classes = {{"classes", all_words, DataType::kString, {-1, classes()}},
                  {"scores", probabilities, DataType::kFloat, {-1, classes()}}};
}

std::string HeadNodes::ForEachRow(std::string_view name, const std::string& values, DataType type,
                                  const std::string& shape_of) {
  const std::string node = StrCat(name_, "/", name);
  const std::string shape = graph_.Node(StrCat(node, "/Shape"), "Shape", {shape_of},
                                        {FloatType(), TypeAttr("out_type", DataType::kInt32)});
  return graph_.Node(node, "BroadcastTo", {values, shape},
                     {TypeAttr("T", type), TypeAttr("Tidx", DataType::kInt32)});
}

HeadOutputs AddHead(const HeadSpec& head, std::vector<std::string> class_names,
                    const std::string& logits, const std::string& scope,
                    formats::GraphDefBuilder* graph) {
  HeadNodes nodes(std::move(class_names), logits, scope, graph);
  return GetHeadKind(head).AddNodes(head, &nodes);
}

}  // namespace muster::engine
