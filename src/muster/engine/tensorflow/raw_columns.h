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

// INVALID_ARGUMENT for columns that do not match the export, with both types and shapes; with
// `labels`, also for a batch without its labels (and sample weight).
absl::Status CheckRawColumns(const KerasExport& model, const features::FeatureBatch& batch,
                             bool labels);

// Whether the batch has labels.
bool HasLabels(const KerasExport& model, const features::FeatureBatch& batch);

// The type, shape and bytes of the column's tensor; it has no place yet.
host::TensorPlace GetPlace(const features::RawColumn& column, int rows);
// Writes the column in host::TensorPlace's format; `to` has as many bytes as that takes.
void WriteRaw(const features::RawColumn& column, std::byte* to);
// Reads a column back from there.
features::RawColumn ReadRaw(const host::TensorPlace& place, const std::byte* from);

// Converts a column of numbers to ids, cast towards 0. INVALID_ARGUMENT for a number that does not
// fit in an id of 32 bits; `what` names the column.
absl::StatusOr<std::vector<int32_t>> ReadIds(formats::DataType type,
                                             std::span<const std::byte> bytes,
                                             const std::string& what);

}  // namespace muster::engine::tensorflow
