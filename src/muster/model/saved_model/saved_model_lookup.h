// Rows of embedding tables as nodes of a TensorFlow graph: by ids, clipped, and combined over the
// ids of a batch row. The names of the nodes begin with `name`.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "muster/features/column.h"
#include "muster/formats/graph_def.h"
#include "muster/model/saved_model/saved_model_features.h"

namespace muster::model {

// Rows of a table by ids, [batch, columns], or by lists of ids, [batch, n, columns]; zeros where
// there is no id. `mask` is `has_id` with a last dimension of 1.
struct TableRows {
  std::string values, has_id, mask;
};

// `max_norm` above 0: each row is clipped, as by tf.clip_by_norm.
TableRows GatherRows(const std::string& name, const std::string& table, const GraphIds& ids,
                     double max_norm, formats::GraphDefBuilder* graph);

// Combines the rows over the ids of a batch row, as tf.nn.safe_embedding_lookup_sparse: zeros for a
// row without ids. [batch, columns]
std::string CombineRows(const std::string& name, const TableRows& rows, const GraphIds& ids,
                        features::Combiner combiner, formats::GraphDefBuilder* graph);

// Sums the squares over the last dimension, which becomes 1.
std::string SumSquares(const std::string& name, const std::string& rows,
                       formats::GraphDefBuilder* graph);

// Adds a node whose only type attribute is T = float.
std::string FloatNode(const std::string& name, std::string_view op,
                      std::initializer_list<std::string> inputs, formats::GraphDefBuilder* graph);

}  // namespace muster::model
