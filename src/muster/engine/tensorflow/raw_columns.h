// The columns of a batch as an exported model takes them: checked, laid out in memory, read as ids.
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

// INVALID_ARGUMENT for columns that are not what the export says, with both types and shapes; with
// `labels`, for a batch without its labels (and sample weight).
absl::Status CheckRawColumns(const KerasExport& model, const features::FeatureBatch& batch,
                             bool labels);

// Whether the batch has labels.
bool HasLabels(const KerasExport& model, const features::FeatureBatch& batch);

// Where the column's tensor will be: type, shape and bytes of it; without a place yet.
host::TensorPlace PlaceOf(const features::RawColumn& column, int rows);
// Writes it as host::TensorPlace says; `to` has as many bytes.
void WriteRaw(const features::RawColumn& column, std::byte* to);
// Reads it back from there.
features::RawColumn ReadRaw(const host::TensorPlace& place, const std::byte* from);

// A column of numbers as ids, cast towards 0. INVALID_ARGUMENT for one that no id of 32 bits can
// be; `what` names the column.
absl::StatusOr<std::vector<int32_t>> ReadIds(formats::DataType type,
                                             std::span<const std::byte> bytes,
                                             const std::string& what);

}  // namespace muster::engine::tensorflow
