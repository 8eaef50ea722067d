// A head's predictions as nodes of a TensorFlow graph: what engine::Predictor computes, with the
// outputs that tf.estimator exports for a head of the same kind. Used by ExportSavedModel only.
#pragma once

#include <string>
#include <vector>

#include "muster/formats/graph_def.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// The tensors that the signatures return.
struct HeadOutputs {
  std::vector<formats::SignatureTensor> predict;  // all those of engine/predictions.h
  std::vector<formats::SignatureTensor> classes;  // "classes" and "scores"; empty for regression
  std::vector<formats::SignatureTensor> regress;  // "outputs"; empty for multi-class, multi-label
};

// `logits` is [batch, head.logits_dimension()]; `scope` is prepended to the names of nodes.
HeadOutputs AddHead(const ModelSpec& spec, const std::string& logits, const std::string& scope,
                    formats::GraphDefBuilder* graph);

}  // namespace muster::model
