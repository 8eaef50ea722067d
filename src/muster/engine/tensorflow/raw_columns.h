// The columns of a batch as an exported model takes them: checks, memory layout, conversion to ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/tensorflow/host/message.h"
#include "muster/engine/tensorflow/keras_export.h"
#include "muster/features/batch.h"

namespace muster::engine::tensorflow {

// INVALID_ARGUMENT for columns that do not match the export, with both types and shapes. With
// `labels`, also for a batch without its labels (and sample weight).
absl::Status CheckRawColumns(const KerasExport& model, const features::FeatureBatch& batch,
                             bool labels);

// Whether the batch has labels.
bool HasLabels(const KerasExport& model, const features::FeatureBatch& batch);

// Returns the type, shape and number of bytes of the column's tensor; its offset is not set yet.
host::TensorPlace GetPlace(const features::RawColumn& column, int rows);
// Writes the column in host::TensorPlace's format; `to` has exactly as many bytes as needed.
void WriteRaw(const features::RawColumn& column, std::byte* to);
// Reads back a column that WriteRaw has written.
features::RawColumn ReadRaw(const host::TensorPlace& place, const std::byte* from);

// Converts a column of numbers to ids, cast towards 0. INVALID_ARGUMENT for a number that does not
// fit in a 32-bit id; `what` names the column.
absl::StatusOr<std::vector<int32_t>> ReadIds(formats::DataType type,
                                             std::span<const std::byte> bytes,
                                             const std::string& what);

}  // namespace muster::engine::tensorflow
