#include "muster/model/saved_model/saved_model_inputs.h"

#include <limits>
#include <set>
#include <span>

#include "muster/formats/missing.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using formats::BoolAttr;
using formats::DataType;
using formats::Field;
using formats::GraphDefBuilder;
using formats::GraphShape;
using formats::IntAttr;
using formats::MissingValues;
using formats::ShapeAttr;
using formats::ShapesAttr;
using formats::TypeAttr;
using formats::TypesAttr;
using formats::ValueType;

DataType GetType(const Field& field) {
  switch (field.type) {
    case ValueType::kInt:
      return DataType::kInt64;
    case ValueType::kFloat:
      return DataType::kFloat;
    case ValueType::kString:
      break;
  }
  return DataType::kString;
}

// Returns the value that stands for a missing one: "", -1 or NaN.
std::string Absent(const Field& field, const std::string& name, GraphDefBuilder* graph) {
  const std::vector<std::string> empty = {""};
  switch (field.type) {
    case ValueType::kInt:
      return graph->Int64(name, -1);
    case ValueType::kFloat:
      return graph->Float(name, std::numeric_limits<float>::quiet_NaN());
    case ValueType::kString:
      break;
  }
  return graph->Strings(name, empty, {});
}

std::string GetDefault(const Field& field, const std::string& name, GraphDefBuilder* graph);

// Returns a bool for each value of `tensor`, [batch] or [batch, n]: whether it counts as missing.
// Returns "" if no value can be missing.
std::string CountsAsNone(const MissingValues& missing, const Field& field,
                         const std::string& tensor, GraphDefBuilder* graph) {
  const std::string name = StrCat(tensor, "/none");
  std::string words, is_nan;
  const auto shape = [](const auto& values) {
    return GraphShape{static_cast<int64_t>(values.size())};
  };
  if (field.type == ValueType::kString) {
    words = graph->Strings(StrCat(name, "/words"), missing.words(), shape(missing.words()));
  } else if (field.type == ValueType::kInt) {
    if (missing.ints().empty()) return "";
    words = graph->Int64s(StrCat(name, "/words"), missing.ints(), shape(missing.ints()));
  } else {
    if (missing.nan()) {
      is_nan =
          graph->Node(StrCat(name, "/IsNan"), "IsNan", {tensor}, {TypeAttr("T", DataType::kFloat)});
    }
    if (missing.floats().empty()) return is_nan;
    words = graph->Floats(StrCat(name, "/words"), missing.floats(), shape(missing.floats()));
  }
  const std::string each = graph->Node(
      StrCat(name, "/each"), "ExpandDims", {tensor, graph->Int32(StrCat(name, "/each/dim"), -1)},
      {TypeAttr("T", GetType(field)), TypeAttr("Tdim", DataType::kInt32)});
  const std::string equal =
      graph->Node(StrCat(name, "/Equal"), "Equal", {each, words}, {TypeAttr("T", GetType(field))});
  const std::string any =
      graph->Node(StrCat(name, "/Any"), "Any", {equal, graph->Int32(StrCat(name, "/Any/axis"), -1)},
                  {TypeAttr("Tidx", DataType::kInt32)});
  if (is_nan.empty()) return any;
  return graph->Node(StrCat(name, "/or_nan"), "LogicalOr", {any, is_nan});
}

std::string RefuseNone(const Field& field, int rank, const std::string& none,
                       const std::string& tensor, GraphDefBuilder* graph) {
  return AddAssert(StrCat(tensor, "/checked"),
                   graph->Node(StrCat(tensor, "/some"), "LogicalNot", {none}), rank,
                   StrCat("input '", field.name, "': no value and no default in these:"), tensor,
                   GetType(field), graph);
}

// For a field whose missing values are marked, NaN or the lowest integer stands for a feature that
// an example does not have, and for a missing value of a raw input.
std::string AbsentMark(const Field& field, const std::string& name, GraphDefBuilder* graph) {
  if (field.type == ValueType::kInt) {
    return graph->Int64(name, std::numeric_limits<int64_t>::min());
  }
  return graph->Float(name, std::numeric_limits<float>::quiet_NaN());
}

// Returns whether a value counts as missing by `none`, which may be "", or is that mark.
std::string OrMarked(const Field& field, const std::string& none, const std::string& tensor,
                     GraphDefBuilder* graph) {
  const std::string name = StrCat(tensor, "/marked");
  const std::string marked =
      field.type == ValueType::kInt
          ? graph->Node(name, "Equal", {tensor, AbsentMark(field, StrCat(name, "/mark"), graph)},
                        {TypeAttr("T", GetType(field))})
          : graph->Node(name, "IsNan", {tensor}, {TypeAttr("T", GetType(field))});
  if (none.empty()) return marked;
  return graph->Node(StrCat(name, "/or_none"), "LogicalOr", {none, marked});
}

// For fields with one value, or a fixed number of values, in every row: a missing value is replaced
// by the default, or makes the request fail. *marked is true where a value was replaced, if the
// field's missing values are marked.
std::string WithDefaults(const UsedField& used, const std::string& tensor, std::string* marked,
                         GraphDefBuilder* graph) {
  const Field& field = *used.field;
  const MissingValues missing(field);
  // If there are several values, a single one cannot be missing.
  const bool has_words = !missing.empty() && (!field.list || used.length == 1);
  std::string none = has_words ? CountsAsNone(missing, field, tensor, graph) : "";
  if (field.mark_missing) *marked = none = OrMarked(field, none, tensor, graph);
  if (none.empty()) return tensor;
  if (!field.has_default) return RefuseNone(field, field.list ? 2 : 1, none, tensor, graph);
  return graph->Node(StrCat(tensor, "/or_default"), "SelectV2",
                     {none, GetDefault(field, StrCat(tensor, "/default"), graph), tensor},
                     {TypeAttr("T", GetType(field))});
}

// Empties each list whose only value counts as missing.
void EmptyLists(GraphInput* input, GraphDefBuilder* graph) {
  const Field& field = *input->field;
  const MissingValues missing(field);
  if (missing.empty()) return;
  const std::string none = CountsAsNone(missing, field, input->tensor, graph);
  if (none.empty()) return;
  const std::string name = StrCat(input->tensor, "/only");
  const std::string ones =
      graph->Node(StrCat(name, "/ones"), "Cast", {input->present},
                  {TypeAttr("SrcT", DataType::kBool), TypeAttr("DstT", DataType::kInt32)});
  const std::string count = graph->Node(
      StrCat(name, "/count"), "Sum", {ones, graph->Int32(StrCat(name, "/count/axis"), 1)},
      {TypeAttr("T", DataType::kInt32), TypeAttr("Tidx", DataType::kInt32),
       BoolAttr("keep_dims", true)});
  const std::string single =
      graph->Node(StrCat(name, "/single"), "Equal", {count, graph->Int32(StrCat(name, "/one"), 1)},
                  {TypeAttr("T", DataType::kInt32)});
  const std::string gone = graph->Node(StrCat(name, "/gone"), "LogicalAnd", {none, single});
  const std::string kept = graph->Node(StrCat(name, "/kept"), "LogicalNot", {gone});
  input->present = graph->Node(StrCat(name, "/present"), "LogicalAnd", {input->present, kept});
  input->tensor = graph->Node(StrCat(name, "/values"), "SelectV2",
                              {gone, Absent(field, StrCat(name, "/absent"), graph), input->tensor},
                              {TypeAttr("T", GetType(field))});
}

// `present` is true where `tensor` holds no "", -1 or NaN; a list of a fixed length has a value
// everywhere.
GraphInput InputWithAbsent(const UsedField& used, const std::string& given,
                           GraphDefBuilder* graph) {
  const Field& field = *used.field;
  GraphInput input;
  input.field = &field;
  const std::string tensor = input.tensor = WithDefaults(used, given, &input.missing, graph);
  if (field.type == ValueType::kFloat && !field.list) return input;
  const std::string present = StrCat(tensor, "/present");
  if (field.type == ValueType::kFloat) {
    const std::string absent = graph->Node(StrCat(tensor, "/absent"), "IsNan", {tensor},
                                           {TypeAttr("T", DataType::kFloat)});
    input.present = graph->Node(present, "LogicalNot", {absent});
  } else {
    input.present =
        graph->Node(present, "NotEqual", {tensor, Absent(field, StrCat(tensor, "/absent"), graph)},
                    {TypeAttr("T", GetType(field))});
  }
  if (used.length > 0) {
    input.present = graph->Node(StrCat(tensor, "/everywhere"), "OnesLike", {input.present},
                                {TypeAttr("T", DataType::kBool)});
  } else if (field.list) {
    EmptyLists(&input, graph);
  }
  return input;
}

// Returns a scalar's default as ParseExampleV2 takes it; an empty tensor makes the feature
// required.
std::string GetDefault(const Field& field, const std::string& name, GraphDefBuilder* graph) {
  const int64_t size = field.has_default ? 1 : 0;
  const GraphShape shape = field.has_default ? GraphShape{} : GraphShape{0};
  const size_t count = static_cast<size_t>(size);
  switch (field.type) {
    case ValueType::kInt: {
      const int64_t value = field.has_default ? std::get<int64_t>(field.default_value) : 0;
      return graph->Int64s(name, {&value, count}, shape);
    }
    case ValueType::kFloat: {
      const float value = field.has_default ? std::get<float>(field.default_value) : 0;
      return graph->Floats(name, {&value, count}, shape);
    }
    case ValueType::kString:
      break;
  }
  const std::string value = field.has_default ? std::get<std::string>(field.default_value) : "";
  return graph->Strings(name, {&value, count}, shape);
}

// Turns a list as ParseExampleV2 gives it (three tensors) into a padded matrix, and where it has
// values.
GraphInput ListFromSparse(const Field& field, const std::string& indices, const std::string& values,
                          const std::string& shape, GraphDefBuilder* graph) {
  const std::string name = StrCat("ParseExample/lists/", field.name);
  const std::string padding = Absent(field, StrCat(name, "/padding"), graph);
  GraphInput input;
  input.field = &field;
  input.tensor =
      graph->Node(name, "SparseToDense", {indices, shape, values, padding},
                  {TypeAttr("T", GetType(field)), TypeAttr("Tindices", DataType::kInt64)});
  input.present =
      graph->Node(StrCat(name, "/present"), "SparseToDense",
                  {indices, shape, graph->Bool(StrCat(name, "/here"), true),
                   graph->Bool(StrCat(name, "/nowhere"), false)},
                  {TypeAttr("T", DataType::kBool), TypeAttr("Tindices", DataType::kInt64)});
  EmptyLists(&input, graph);
  return input;
}

}  // namespace

std::string AddAssert(const std::string& name, const std::string& condition, int rank,
                      const std::string& message, const std::string& tensor, DataType type,
                      GraphDefBuilder* graph) {
  const std::vector<int32_t> axes = {0, 1};
  const std::string all = graph->Node(
      StrCat(name, "/All"), "All",
      {condition, graph->Int32s(StrCat(name, "/All/axes"),
                                std::span(axes).first(static_cast<size_t>(rank)), {rank})},
      {TypeAttr("Tidx", DataType::kInt32)});
  const std::vector<std::string> messages = {message};
  const std::vector<DataType> types = {DataType::kString, type};
  const std::string check =
      graph->Node(StrCat(name, "/Assert"), "Assert",
                  {all, graph->Strings(StrCat(name, "/message"), messages, {}), tensor},
                  {TypesAttr("T", types)});
  return graph->Node(name, "Identity", {tensor, StrCat("^", check)}, {TypeAttr("T", type)});
}

std::vector<UsedField> GetFields(const ModelSpec& spec) {
  std::set<std::string> columns, names;
  for (const std::string& name : spec.UsedColumns()) {
    spec.features.CollectUses(name, &columns, &names);
  }
  std::vector<UsedField> fields;
  for (const Field& field : spec.features.schema.fields) {
    if (!names.contains(field.name)) continue;
    UsedField& used = fields.emplace_back(UsedField{.field = &field});
    for (const ColumnSpec& column : spec.features.columns) {
      const bool fixed =
          column.kind == ColumnKind::kNumeric || column.kind == ColumnKind::kBucketized;
      if (fixed && field.list && column.input == field.name && columns.contains(column.name)) {
        used.length = column.shape;
      }
    }
  }
  return fields;
}

GraphInputs AddRawInputs(const std::vector<UsedField>& fields, GraphDefBuilder* graph) {
  GraphInputs inputs;
  for (const UsedField& used : fields) {
    const Field& field = *used.field;
    GraphShape shape = {-1};
    if (field.list) shape.push_back(used.length > 0 ? used.length : -1);
    const std::string tensor =
        graph->Node(StrCat("inputs/", field.name), "Placeholder", {},
                    {TypeAttr("dtype", GetType(field)), ShapeAttr("shape", shape)});
    inputs.by_field[field.name] = InputWithAbsent(used, tensor, graph);
    inputs.signature.push_back({field.name, tensor, GetType(field), shape});
  }
  return inputs;
}

GraphInputs AddExampleInputs(const std::vector<UsedField>& fields, GraphDefBuilder* graph) {
  GraphInputs inputs;
  const std::string examples =
      graph->Node("input_example_tensor", "Placeholder", {},
                  {TypeAttr("dtype", DataType::kString), ShapeAttr("shape", {-1})});
  inputs.signature.push_back({"examples", examples, DataType::kString, {-1}});
  if (fields.empty()) return inputs;

  // Lists of a fixed length are dense, as scalars are.
  std::vector<const Field*> lists;
  std::vector<UsedField> dense;
  for (const UsedField& used : fields) {
    if (used.field->list && used.length == 0) {
      lists.push_back(used.field);
    } else {
      dense.push_back(used);
    }
  }
  std::vector<std::string> list_keys, dense_keys, defaults;
  std::vector<DataType> list_types, dense_types;
  std::vector<GraphShape> dense_shapes;
  for (const Field* field : lists) {
    list_keys.push_back(field->name);
    list_types.push_back(GetType(*field));
  }
  for (const UsedField& used : dense) {
    const Field& field = *used.field;
    dense_keys.push_back(field.name);
    dense_types.push_back(GetType(field));
    dense_shapes.push_back(field.list ? GraphShape{used.length} : GraphShape{});
    const std::string key = StrCat("ParseExample/key_", field.name);
    defaults.push_back(field.mark_missing ? AbsentMark(field, key, graph)
                                          : GetDefault(field, key, graph));
  }
  const int64_t num_lists = static_cast<int64_t>(lists.size());
  const int64_t num_dense = static_cast<int64_t>(dense.size());
  std::vector<std::string> arguments = {
      examples, graph->Strings("ParseExample/names", {}, {0}),
      graph->Strings("ParseExample/sparse_keys", list_keys, {num_lists}),
      graph->Strings("ParseExample/dense_keys", dense_keys, {num_dense}),
      graph->Strings("ParseExample/ragged_keys", {}, {0})};
  arguments.insert(arguments.end(), defaults.begin(), defaults.end());
  const std::string parsed =
      graph->Node("ParseExample/ParseExampleV2", "ParseExampleV2", arguments,
                  {TypesAttr("Tdense", dense_types), IntAttr("num_sparse", num_lists),
                   TypesAttr("sparse_types", list_types), TypesAttr("ragged_value_types", {}),
                   TypesAttr("ragged_split_types", {}), ShapesAttr("dense_shapes", dense_shapes)});

  // Outputs: indices of all lists, values of all lists, shapes of all lists, then the dense fields.
  const auto output = [&](int64_t i) { return StrCat(parsed, ":", i); };
  for (int64_t i = 0; i < num_lists; ++i) {
    inputs.by_field[lists[i]->name] = ListFromSparse(*lists[i], output(i), output(num_lists + i),
                                                     output(2 * num_lists + i), graph);
  }
  for (int64_t i = 0; i < num_dense; ++i) {
    const std::string& name = dense[i].field->name;
    const std::string tensor =
        graph->Node(StrCat("ParseExample/scalars/", name), "Identity", {output(3 * num_lists + i)},
                    {TypeAttr("T", dense_types[i])});
    inputs.by_field[name] = InputWithAbsent(dense[i], tensor, graph);
  }
  return inputs;
}

}  // namespace muster::model
