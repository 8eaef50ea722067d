// FeatureTransform: Columns (values as read) -> FeatureBatch (floats and ids), as TensorFlow's
// feature columns do it. docs/features.md says which rule comes from which TensorFlow kernel.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/formats/columns.h"

namespace muster::features {

// What a model asks for: names of dense columns (numeric, indicator) and of categorical ones, each
// once; the batch holds them in this order.
struct FeatureRequest {
  std::vector<std::string> dense;
  std::vector<std::string> categorical;
};

// Thread-compatible: Apply is const and may run in several threads.
class FeatureTransform {
 public:
  // `spec` is copied. NOT_FOUND or INVALID_ARGUMENT for a request that does not fit the spec.
  static absl::StatusOr<std::unique_ptr<FeatureTransform>> Create(const FeatureSpec& spec,
                                                                  const FeatureRequest& request);
  virtual ~FeatureTransform() = default;
  // Replaces *batch. `rows` must be of spec.schema. With `with_labels` also the labels.
  // INVALID_ARGUMENT names the row (0-based in the batch), column and value: a label that is not in
  // its vocabulary, an identity id out of range, a value that is not finite in a numeric column.
  // *bad_row is set then, and -1 for other errors.
  virtual absl::Status Apply(const formats::Columns& rows, bool with_labels, FeatureBatch* batch,
                             int* bad_row) const = 0;
};

// TensorFlow's Fingerprint64 (FarmHash na), FingerprintCat64 and the id of a hashed string.
uint64_t Fingerprint64(std::string_view bytes);
uint64_t FingerprintCat64(uint64_t a, uint64_t b);

}  // namespace muster::features
