// FeatureTransform: turns Columns (values as read) into a FeatureBatch (floats and ids), as
// TensorFlow's feature columns do. docs/features.md says which rule comes from which TensorFlow
// kernel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/coverage.h"
#include "muster/formats/columns.h"

namespace muster::features {

// The requested columns: the names of dense columns (numeric, indicator, sequence) and of
// categorical ones, each once. The batch has them in this order.
struct FeatureRequest {
  std::vector<std::string> dense;
  std::vector<std::string> categorical;

  friend bool operator==(const FeatureRequest&, const FeatureRequest&) = default;
};

// Several threads may call Apply at once, each with its own batch.
class FeatureTransform {
 public:
  // Copies `spec`. NOT_FOUND or INVALID_ARGUMENT for a request that does not fit the spec;
  // FAILED_PRECONDITION for a column whose numbers are not known yet (ColumnSpec::to_measure).
  static absl::StatusOr<std::unique_ptr<FeatureTransform>> Create(const FeatureSpec& spec,
                                                                  const FeatureRequest& request);
  virtual ~FeatureTransform() = default;
  // Replaces *batch. `rows` must have spec.schema. With `with_labels` also fills the labels and, if
  // the spec names them, the weights. INVALID_ARGUMENT for a bad row: a label that is not in its
  // vocabulary or has a wrong number of values, a weight below 0, an identity id out of range, a
  // value that is not finite in a numeric column. The error names column and value, and *bad_row
  // (if not null) is the row, from 0; without an error and for other errors *bad_row is -1. After
  // an error the contents of *batch are unspecified. Allocates nothing once batches of this size
  // have been seen.
  virtual absl::Status Apply(const formats::Columns& rows, bool with_labels, FeatureBatch* batch,
                             int* bad_row) const = 0;
  // Returns what Apply has found in each vocabulary column so far, by the columns' names. A column
  // that is computed in several ways is counted as often. No call of Apply may run.
  virtual std::vector<WordCount> CountWords() const { return {}; }
};

}  // namespace muster::features
