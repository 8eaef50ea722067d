// Compiled rows: the rows of a FeatureBatch as bytes (row_compiler.h), and back, with the same
// floats and ids. Reading one takes no decoding, hashing or lookup. See
// docs/formats/compiled_features.md.
#pragma once

#include <memory>
#include <string_view>

#include "muster/base/status.h"
#include "muster/features/transform.h"
#include "muster/formats/schema.h"
#include "muster/train/input/compiled/compiled_layout.h"

namespace muster::train {

// The schema of compiled rows as records: one string, the row's bytes.
formats::Schema CompiledSchema();

// Marks an error as one of a compiled file, after which its data can be read from the source, and
// tells whether one is.
absl::Status CompiledDamage(std::string_view message);
bool IsCompiledDamage(const absl::Status& status);

// Makes a transform from rows of CompiledSchema() to batches. Its Apply() returns an error of
// IsCompiledDamage for bytes that are not a row of the layout.
std::unique_ptr<features::FeatureTransform> NewCompiledTransform(const CompiledLayout& layout);

}  // namespace muster::train
