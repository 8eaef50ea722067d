// HeadNodes: a head's predictions as nodes of a TensorFlow graph, which compute what
// HeadKind::Predict does. Used by the export of SavedModels only.
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
  std::vector<formats::SignatureTensor> predict;  // all those of HeadKind::Predict
  std::vector<formats::SignatureTensor> classes;  // "classes" and "scores"; empty for regression
  std::vector<formats::SignatureTensor> regress;  // "outputs"; empty for multi-class, multi-label
};

// Adds nodes below "SCOPEhead/predictions". One owner thread; the graph outlives it.
class HeadNodes {
 public:
  HeadNodes(std::vector<std::string> class_names, std::string logits, const std::string& scope,
            formats::GraphDefBuilder* graph);

  // [batch, logits_dimension].
  const std::string& logits() const { return logits_; }
  int64_t classes() const { return static_cast<int64_t>(class_names_.size()); }

  // A node whose one type attribute is T = float.
  std::string Floats(std::string_view name, std::string_view op,
                     std::initializer_list<std::string> inputs);
  // Two tensors of floats side by side: the columns of `a`, then those of `b`.
  std::string Concat(std::string_view name, const std::string& a, const std::string& b);
  // `count` columns of `matrix` from `first` on: [batch, count].
  std::string Columns(std::string_view name, const std::string& matrix, int64_t first,
                      int64_t count);
  // The sum of each row: [batch, 1].
  std::string SumOfColumns(std::string_view name, const std::string& matrix);
  // The names of all classes in each row of `shape_of`: [batch, classes].
  std::string ClassNamesInEachRow(std::string_view name, const std::string& shape_of);
  // class_ids, classes, all_class_ids, all_classes and the classification signature. `scores` is
  // [batch, classes], its largest is the class.
  void AddClasses(const std::string& scores, const std::string& probabilities, HeadOutputs* out);

 private:
  const std::string& LastAxis();
  const std::string& ClassNames();
  // `values`, [classes], in every row of `shape_of`.
  std::string ForEachRow(std::string_view name, const std::string& values, formats::DataType type,
                         const std::string& shape_of);

  const std::vector<std::string> class_names_;
  const std::string logits_;
  const std::string name_;
  formats::GraphDefBuilder& graph_;
  std::string last_axis_, names_node_;
};

// The nodes of a valid head; `class_names` as in HeadKind::Predict. `logits` is [batch,
// head.logits_dimension()]; `scope` is prepended to the names of nodes.
HeadOutputs AddHead(const HeadSpec& head, std::vector<std::string> class_names,
                    const std::string& logits, const std::string& scope,
                    formats::GraphDefBuilder* graph);

}  // namespace muster::engine
