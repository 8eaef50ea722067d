// HeadNodes: a head's predictions as nodes of a TensorFlow graph, which compute what
// HeadKind::Predict does. Used only by the export of SavedModels.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "muster/formats/graph_def.h"

namespace muster::engine {

struct HeadSpec;

// The tensors that the signatures return.
struct HeadOutputs {
  std::vector<formats::SignatureTensor> predict;  // all tensors of HeadKind::Predict
  std::vector<formats::SignatureTensor> classes;  // "classes" and "scores"; empty for regression
  std::vector<formats::SignatureTensor> regress;  // "outputs"; empty for multi-class, multi-label
};

// Adds nodes below "SCOPEhead/predictions". One owner thread; the graph must outlive it.
class HeadNodes {
 public:
  HeadNodes(std::vector<std::string> class_names, std::string logits, const std::string& scope,
            formats::GraphDefBuilder* graph);

  // The tensor of the logits, [batch, logits_dimension].
  const std::string& logits() const { return logits_; }
  int64_t classes() const { return static_cast<int64_t>(class_names_.size()); }

  // Adds a node whose only type attribute is T = float.
  std::string Floats(std::string_view name, std::string_view op,
                     std::initializer_list<std::string> inputs);
  // Concatenates two float tensors: the columns of `a`, then those of `b`.
  std::string Concat(std::string_view name, const std::string& a, const std::string& b);
  // Takes `count` columns of `matrix` from `first` on: [batch, count].
  std::string Columns(std::string_view name, const std::string& matrix, int64_t first,
                      int64_t count);
  // Sums each row: [batch, 1].
  std::string SumOfColumns(std::string_view name, const std::string& matrix);
  // Repeats the names of all classes for each row of `shape_of`: [batch, classes].
  std::string ClassNamesInEachRow(std::string_view name, const std::string& shape_of);
  // Adds class_ids, classes, all_class_ids, all_classes and the classification signature. `scores`
  // is [batch, classes]; a row's class is the one with the largest score.
  void AddClasses(const std::string& scores, const std::string& probabilities, HeadOutputs* out);

 private:
  const std::string& LastAxis();
  const std::string& ClassNames();
  // Repeats `values`, [classes], for each row of `shape_of`.
  std::string ForEachRow(std::string_view name, const std::string& values, formats::DataType type,
                         const std::string& shape_of);

  const std::vector<std::string> class_names_;
  const std::string logits_;
  const std::string name_;
  formats::GraphDefBuilder& graph_;
  std::string last_axis_, names_node_;
};

// Adds the nodes of a valid head. `class_names` as in HeadKind::Predict. `logits` is [batch,
// head.logits_dimension()]; `scope` is prepended to the names of nodes.
HeadOutputs AddHead(const HeadSpec& head, std::vector<std::string> class_names,
                    const std::string& logits, const std::string& scope,
                    formats::GraphDefBuilder* graph);

}  // namespace muster::engine
