// RawColumnSpec: how an exported model takes a field of the records; and the transform that makes
// RawColumns from rows. See docs/keras.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/transform.h"
#include "muster/formats/bundle.h"
#include "muster/formats/schema.h"

namespace muster::features {

// Stands for any length.
inline constexpr int64_t kAnySize = -1;

// An input, a label, the sample weight, the key or a prediction.
struct RawColumnSpec {
  std::string name;
  std::string feature;  // the record's field; empty for a prediction
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;  // of a row; may have kAnySize
  // How the field's one string of bytes becomes the value: "raw" (little-endian numbers of `type`),
  // "png" or "jpeg" (decoded later, by the engine). Empty: the field is the value.
  std::string decode;

  bool is_image() const { return decode == "png" || decode == "jpeg"; }
};

struct RawColumnSpecs {
  std::vector<RawColumnSpec> inputs = {};
  std::vector<RawColumnSpec> labels = {};  // the sample weight last, if there is one
  std::optional<RawColumnSpec> key = {};   // one value per row, written with the predictions
};

// Returns the fields that the columns read, each once, including those of labels and key if
// requested. Integers and bool are int fields, other numbers float; a scalar is a single value,
// everything else a list. INVALID_ARGUMENT for columns that use one field in two ways, and for
// columns that no record can have (complex numbers, two lengths of kAnySize).
absl::StatusOr<formats::Schema> RawSchema(const RawColumnSpecs& columns, bool with_labels,
                                          bool with_key);

// Makes the transform, which fills only FeatureBatch::raw: `columns.inputs`, then, with labels,
// `columns.labels`. A length of kAnySize is padded to the batch's longest, at least 1, with 0 or
// "". INVALID_ARGUMENT for a wrong number of values, or a number that the type cannot hold: the
// error names the field, what the row has and what the model takes.
absl::StatusOr<std::unique_ptr<FeatureTransform>> NewRawTransform(RawColumnSpecs columns,
                                                                  const formats::Schema& schema);

// Prints "[8]" or "[any, 3]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace muster::features
