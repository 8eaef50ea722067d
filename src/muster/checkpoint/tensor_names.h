// Names of the tensors that a checkpoint has beside weights, slots and the step: string scalars
// (docs/formats/checkpoint.md).
#pragma once

namespace muster::checkpoint {

// The data position; for N replicas: NAME/0 ... NAME/N-1.
constexpr const char* kPositionName = "muster/position";
// The counts of records since the first step (train/input/record_counts.h).
constexpr const char* kRecordsName = "muster/records";
// For an exported model: the number of rows in a batch, needed to evaluate it.
constexpr const char* kBatchSizeName = "muster/batch_size";

}  // namespace muster::checkpoint
