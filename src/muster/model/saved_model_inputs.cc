#include "muster/model/saved_model_inputs.h"

#include <set>

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using formats::DataType;
using formats::Field;
using formats::GraphDefBuilder;
using formats::GraphShape;
using formats::IntAttr;
using formats::ShapeAttr;
using formats::ShapesAttr;
using formats::TypeAttr;
using formats::TypesAttr;
using formats::ValueType;

DataType TypeOf(const Field& field) {
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

void CollectFields(const features::FeatureSpec& spec, const ColumnSpec& column,
                   std::set<std::string>* fields) {
  const auto collect = [&](const std::string& name) {
    if (const ColumnSpec* input = spec.Find(name)) CollectFields(spec, *input, fields);
  };
  switch (column.kind) {
    case ColumnKind::kIndicator:
    case ColumnKind::kEmbedding:
      return collect(column.input);
    case ColumnKind::kCross:
      for (const std::string& key : column.keys) {
        if (spec.schema.Find(key) >= 0) {
          fields->insert(key);
        } else {
          collect(key);
        }
      }
      return;
    default:
      fields->insert(column.input);
  }
}

// What stands for "no value": "" or -1.
std::string Absent(const Field& field, const std::string& name, GraphDefBuilder* graph) {
  const std::vector<std::string> empty = {""};
  return field.type == ValueType::kString ? graph->Strings(name, empty, {})
                                          : graph->Int64(name, -1);
}

GraphInput InputWithAbsent(const Field& field, const std::string& tensor, GraphDefBuilder* graph) {
  GraphInput input{&field, tensor, ""};
  if (field.type == ValueType::kFloat) return input;
  const std::string absent = Absent(field, StrCat(tensor, "/absent"), graph);
  input.present = graph->Node(StrCat(tensor, "/present"), "NotEqual", {tensor, absent},
                              {TypeAttr("T", TypeOf(field))});
  return input;
}

// A scalar's default as ParseExampleV2 takes it; no value at all makes the feature required.
std::string DefaultOf(const Field& field, const std::string& name, GraphDefBuilder* graph) {
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

// A list as ParseExampleV2 gives it, three tensors: to a padded matrix and where it has values.
GraphInput ListFromSparse(const Field& field, const std::string& indices, const std::string& values,
                          const std::string& shape, GraphDefBuilder* graph) {
  const std::string name = StrCat("ParseExample/lists/", field.name);
  const std::string padding = Absent(field, StrCat(name, "/padding"), graph);
  GraphInput input;
  input.field = &field;
  input.tensor =
      graph->Node(name, "SparseToDense", {indices, shape, values, padding},
                  {TypeAttr("T", TypeOf(field)), TypeAttr("Tindices", DataType::kInt64)});
  input.present =
      graph->Node(StrCat(name, "/present"), "SparseToDense",
                  {indices, shape, graph->Bool(StrCat(name, "/here"), true),
                   graph->Bool(StrCat(name, "/nowhere"), false)},
                  {TypeAttr("T", DataType::kBool), TypeAttr("Tindices", DataType::kInt64)});
  return input;
}

}  // namespace

std::vector<const Field*> FieldsOf(const ModelSpec& spec) {
  std::set<std::string> names;
  const auto collect = [&](const std::vector<std::string>& columns) {
    for (const std::string& name : columns) {
      CollectFields(spec.features, *spec.features.Find(name), &names);
    }
  };
  if (spec.linear) collect(spec.linear->columns);
  if (spec.dnn) collect(spec.dnn->columns);
  std::vector<const Field*> fields;
  for (const Field& field : spec.features.schema.fields) {
    if (names.contains(field.name)) fields.push_back(&field);
  }
  return fields;
}

GraphInputs AddRawInputs(const std::vector<const Field*>& fields, GraphDefBuilder* graph) {
  GraphInputs inputs;
  for (const Field* field : fields) {
    const GraphShape shape = field->list ? GraphShape{-1, -1} : GraphShape{-1};
    const std::string tensor =
        graph->Node(StrCat("inputs/", field->name), "Placeholder", {},
                    {TypeAttr("dtype", TypeOf(*field)), ShapeAttr("shape", shape)});
    inputs.by_field[field->name] = InputWithAbsent(*field, tensor, graph);
    inputs.signature.push_back({field->name, tensor, TypeOf(*field), shape});
  }
  return inputs;
}

GraphInputs AddExampleInputs(const std::vector<const Field*>& fields, GraphDefBuilder* graph) {
  GraphInputs inputs;
  const std::string examples =
      graph->Node("input_example_tensor", "Placeholder", {},
                  {TypeAttr("dtype", DataType::kString), ShapeAttr("shape", {-1})});
  inputs.signature.push_back({"examples", examples, DataType::kString, {-1}});
  if (fields.empty()) return inputs;

  std::vector<const Field*> lists;
  std::vector<const Field*> scalars;
  for (const Field* field : fields) (field->list ? lists : scalars).push_back(field);
  std::vector<std::string> list_keys, scalar_keys, defaults;
  std::vector<DataType> list_types, scalar_types;
  for (const Field* field : lists) {
    list_keys.push_back(field->name);
    list_types.push_back(TypeOf(*field));
  }
  for (const Field* field : scalars) {
    scalar_keys.push_back(field->name);
    scalar_types.push_back(TypeOf(*field));
    defaults.push_back(DefaultOf(*field, StrCat("ParseExample/key_", field->name), graph));
  }
  const int64_t num_lists = static_cast<int64_t>(lists.size());
  const int64_t num_scalars = static_cast<int64_t>(scalars.size());
  std::vector<std::string> arguments = {
      examples, graph->Strings("ParseExample/names", {}, {0}),
      graph->Strings("ParseExample/sparse_keys", list_keys, {num_lists}),
      graph->Strings("ParseExample/dense_keys", scalar_keys, {num_scalars}),
      graph->Strings("ParseExample/ragged_keys", {}, {0})};
  arguments.insert(arguments.end(), defaults.begin(), defaults.end());
  const std::string parsed =
      graph->Node("ParseExample/ParseExampleV2", "ParseExampleV2", arguments,
                  {TypesAttr("Tdense", scalar_types), IntAttr("num_sparse", num_lists),
                   TypesAttr("sparse_types", list_types), TypesAttr("ragged_value_types", {}),
                   TypesAttr("ragged_split_types", {}),
                   ShapesAttr("dense_shapes", std::vector<GraphShape>(scalars.size()))});

  // Outputs: indices of all lists, values of all lists, shapes of all lists, scalars.
  const auto output = [&](int64_t i) { return StrCat(parsed, ":", i); };
  for (int64_t i = 0; i < num_lists; ++i) {
    inputs.by_field[lists[i]->name] = ListFromSparse(*lists[i], output(i), output(num_lists + i),
                                                     output(2 * num_lists + i), graph);
  }
  for (int64_t i = 0; i < num_scalars; ++i) {
    const std::string tensor =
        graph->Node(StrCat("ParseExample/scalars/", scalars[i]->name), "Identity",
                    {output(3 * num_lists + i)}, {TypeAttr("T", scalar_types[i])});
    inputs.by_field[scalars[i]->name] = InputWithAbsent(*scalars[i], tensor, graph);
  }
  return inputs;
}

}  // namespace muster::model
