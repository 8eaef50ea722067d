#include "muster/model/saved_model/saved_model_variables.h"

#include "absl/strings/str_join.h"

namespace muster::model {
namespace {

using formats::DataType;
using formats::GraphShape;
using formats::ShapeAttr;
using formats::StringAttr;
using formats::TypeAttr;
using formats::TypesAttr;

std::string ShapeText(const GraphShape& shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

SavedModelVariables::SavedModelVariables(std::span<const engine::VariableSpec> variables,
                                         formats::GraphDefBuilder* graph)
    : variables_(variables), graph_(*graph) {
  for (const engine::VariableSpec& variable : variables) {
    const std::string& name = variable.name;
    formats::GraphVariable node;
    node.handle =
        graph_.Node(name, "VarHandleOp", {},
                    {TypeAttr("dtype", DataType::kFloat), ShapeAttr("shape", variable.shape),
                     StringAttr("shared_name", name), StringAttr("container", "")});
    const std::string shape = graph_.Int64s(StrCat(name, "/Initializer/shape"), variable.shape,
                                            {static_cast<int64_t>(variable.shape.size())});
    const std::string zero = graph_.Float(StrCat(name, "/Initializer/zero"), 0);
    node.initial_value =
        graph_.Node(StrCat(name, "/Initializer/zeros"), "Fill", {shape, zero},
                    {TypeAttr("T", DataType::kFloat), TypeAttr("index_type", DataType::kInt64)});
    node.initializer =
        graph_.Node(StrCat(name, "/Assign"), "AssignVariableOp", {node.handle, node.initial_value},
                    {TypeAttr("dtype", DataType::kFloat)});
    node.snapshot = graph_.Node(StrCat(name, "/Read/ReadVariableOp"), "ReadVariableOp",
                                {node.handle}, {TypeAttr("dtype", DataType::kFloat)});
    node.trainable = variable.kind != engine::VariableKind::kState;
    places_.emplace(name, static_cast<int>(nodes_.size()));
    nodes_.push_back(std::move(node));
  }
}

int SavedModelVariables::Find(const std::string& name, const GraphShape& shape) {
  const auto place = places_.find(name);
  std::string error;
  if (place == places_.end()) {
    error = StrCat("the model has no variable '", name, "'");
  } else if (variables_[place->second].shape != shape) {
    error = StrCat("variable '", name, "' has shape ", ShapeText(variables_[place->second].shape),
                   ", but its spec has ", ShapeText(shape));
  } else {
    return place->second;
  }
  if (status_.ok()) status_ = absl::InvalidArgumentError(error);
  return -1;
}

std::string SavedModelVariables::Handle(const std::string& name, const GraphShape& shape) {
  const int place = Find(name, shape);
  return place < 0 ? "" : nodes_[place].handle;
}

std::string SavedModelVariables::Value(const std::string& name, const GraphShape& shape) {
  const int place = Find(name, shape);
  return place < 0 ? "" : nodes_[place].snapshot;
}

void SavedModelVariables::AddSaver(formats::MetaGraph* meta) {
  const int64_t count = static_cast<int64_t>(variables_.size());
  const std::vector<std::string> default_prefix = {"model"};
  const std::string prefix =
      graph_.Node("save/Const", "PlaceholderWithDefault",
                  {graph_.Strings("save/filename/input", default_prefix, {})},
                  {TypeAttr("dtype", DataType::kString), ShapeAttr("shape", {})});
  std::vector<std::string> names;
  for (const engine::VariableSpec& variable : variables_) names.push_back(variable.name);
  const std::vector<std::string> slices(names.size());  // "" stands for the whole tensor
  const std::vector<DataType> types(names.size(), DataType::kFloat);

  std::vector<std::string> inputs = {
      prefix, graph_.Strings("save/SaveV2/tensor_names", names, {count}),
      graph_.Strings("save/SaveV2/shape_and_slices", slices, {count})};
  for (const formats::GraphVariable& node : nodes_) inputs.push_back(node.snapshot);
  const std::string save =
      graph_.Node("save/SaveV2", "SaveV2", inputs, {TypesAttr("dtypes", types)});
  meta->saver_save_tensor =
      graph_.Node("save/control_dependency", "Identity", {prefix, StrCat("^", save)},
                  {TypeAttr("T", DataType::kString)});

  const std::string restore =
      graph_.Node("save/RestoreV2", "RestoreV2",
                  {prefix, graph_.Strings("save/RestoreV2/tensor_names", names, {count}),
                   graph_.Strings("save/RestoreV2/shape_and_slices", slices, {count})},
                  {TypesAttr("dtypes", types)});
  std::vector<std::string> assigned;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    assigned.push_back(StrCat("^", graph_.Node("save/AssignVariableOp", "AssignVariableOp",
                                               {nodes_[i].handle, StrCat(restore, ":", i)},
                                               {TypeAttr("dtype", DataType::kFloat)})));
  }
  meta->saver_restore_op = graph_.Node("save/restore_all", "NoOp", assigned);
  meta->saver_filename_tensor = prefix;
  meta->variables = nodes_;
}

}  // namespace muster::model
