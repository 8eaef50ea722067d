#include "muster/model/layer_graph.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>

#include "muster/formats/graph_def.h"
#include "muster/model/keras/exported_graph.h"

namespace muster::model {
namespace {

using formats::GraphAttr;
using formats::GraphShape;

constexpr size_t kMaxAttributeBytes = 500;  // longer values, such as vocabularies, are cut

std::string Shown(const YAML::Node& value) {
  YAML::Emitter out;
  out << YAML::Flow << value;
  std::string text = out.c_str();
  if (text.size() > kMaxAttributeBytes) text = text.substr(0, kMaxAttributeBytes) + "...";
  return text;
}

// Whether the kind reads fields; columns of the other kinds read columns.
bool ReadsFields(const std::string& kind) {
  static constexpr std::string_view kKinds[] = {
      "numeric", "bucketized", "vocabulary", "identity", "hash", "cross", "sequence_numeric"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

formats::DataType GetType(formats::ValueType type) {
  switch (type) {
    case formats::ValueType::kInt:
      return formats::DataType::kInt64;
    case formats::ValueType::kFloat:
      return formats::DataType::kFloat;
    case formats::ValueType::kString:
      return formats::DataType::kString;
  }
  return formats::DataType::kString;
}

GraphAttr OutputShape(const GraphShape& shape) {
  return formats::ShapesAttr("_output_shapes", std::span(&shape, 1));
}

class LayerGraphBuilder {
 public:
  explicit LayerGraphBuilder(const Model& model)
      : model_(model), columns_(YAML::Load(PrintModelSpec(model.spec))["columns"]) {}

  std::string Build() {
    for (const engine::LayerInfo& layer : model_.engine->layers()) AddLayer(layer);
    AddHead();
    return graph_.Encode();
  }

 private:
  // Returns the node of a field; "" if the data has no such field.
  std::string Field(const std::string& name) {
    const auto found = fields_.find(name);
    if (found != fields_.end()) return found->second;
    const formats::Schema& schema = model_.spec.features.schema;
    const int index = schema.Find(name);
    if (index < 0) return "";
    const formats::DataType type = GetType(schema.fields[static_cast<size_t>(index)].type);
    return fields_[name] =
               graph_.Node(StrCat("inputs/", name), "Placeholder", std::span<const std::string>(),
                           {formats::TypeAttr("dtype", type), OutputShape({-1})});
  }

  std::string Column(const std::string& name) {
    const auto found = column_nodes_.find(name);
    if (found != column_nodes_.end()) return found->second;
    const YAML::Node column = columns_[name];
    if (!column.IsDefined() || column.size() == 0) return "";
    column_nodes_[name] = "";  // a column that reads this name reads the field, not itself
    // The first key is the kind of the column, with what it reads.
    const std::string kind = column.begin()->first.Scalar();
    std::vector<std::string> inputs;
    std::vector<GraphAttr> attributes;
    for (const auto& entry : column) {
      const std::string key = entry.first.Scalar();
      if (key == kind) {
        AddSources(entry.second, !ReadsFields(kind), &inputs);
      } else if (key == "weights") {
        AddSources(entry.second, false, &inputs);
      } else {
        attributes.push_back(formats::StringAttr(key, Shown(entry.second)));
      }
    }
    return column_nodes_[name] = graph_.Node(StrCat("columns/", name), kind, inputs, attributes);
  }

  // If a name is both a field and a column, `columns_first` says which one is meant.
  void AddSources(const YAML::Node& names, bool columns_first, std::vector<std::string>* inputs) {
    if (names.IsSequence()) {
      for (const YAML::Node& name : names) AddSources(name, columns_first, inputs);
      return;
    }
    if (!names.IsScalar()) return;
    const std::string& name = names.Scalar();
    std::string source = columns_first ? Column(name) : Field(name);
    if (source.empty()) source = columns_first ? Field(name) : Column(name);
    if (!source.empty()) inputs->push_back(source);
  }

  void AddColumns(const std::vector<int>& places, const std::vector<std::string>& names,
                  std::vector<std::string>* inputs) {
    for (const int place : places) {
      if (static_cast<size_t>(place) >= names.size()) continue;
      const std::string column = Column(names[static_cast<size_t>(place)]);
      if (!column.empty()) inputs->push_back(column);
    }
  }

  void AddLayer(const engine::LayerInfo& layer) {
    std::vector<std::string> inputs;
    for (const int below : layer.layers) inputs.push_back(layers_[static_cast<size_t>(below)]);
    AddColumns(layer.dense, model_.request.dense, &inputs);
    AddColumns(layer.id_lists, model_.request.categorical, &inputs);
    for (const int variable : layer.variables) {
      const engine::VariableSpec& spec = model_.engine->variables()[static_cast<size_t>(variable)];
      std::string& node = variables_[spec.name];
      if (node.empty()) {
        node = graph_.Node(spec.name, "Variable", std::span<const std::string>(),
                           {formats::TypeAttr("dtype", formats::DataType::kFloat),
                            OutputShape(GraphShape(spec.shape.begin(), spec.shape.end()))});
      }
      inputs.push_back(node);
    }
    std::vector<GraphAttr> attributes = {OutputShape({-1, layer.width})};
    for (const auto& [name, value] : layer.attributes) {
      attributes.push_back(formats::StringAttr(name, value));
    }
    layers_.push_back(graph_.Node(layer.name, layer.op, inputs, attributes));
  }

  void AddHead() {
    if (layers_.empty()) return;
    const std::string logits = layers_.back();
    std::vector<std::string> inputs = {logits};
    for (const std::string& name :
         {model_.spec.features.label.input, model_.spec.features.weight}) {
      const std::string field = Field(name);
      if (!field.empty()) inputs.push_back(field);
    }
    graph_.Node("head/loss", "Loss", inputs, {OutputShape({})});
    graph_.Node("head/predictions", "Predictions", {logits},
                {OutputShape({-1, model_.engine->logits_dimension()})});
  }

  const Model& model_;
  const YAML::Node columns_;  // the columns of the printed spec
  formats::GraphDefBuilder graph_;
  std::map<std::string, std::string> fields_, column_nodes_, variables_;
  std::vector<std::string> layers_;
};

}  // namespace

absl::StatusOr<std::string> LayerGraph(const Model& model) {
  if (model.spec.exported) return StepGraph(*model.files, *model.spec.exported);
  return LayerGraphBuilder(model).Build();
}

}  // namespace muster::model
