// RecordCounts: what became of the records of a training, since its first step: whoever takes its
// state over, from another replica or a checkpoint, takes the counts with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::train {

struct RecordCounts {
  int64_t trained = 0;  // in the weights, once for each time
  int64_t dropped = 0;  // read and not trained: the rest of an epoch, a batch without a finite loss
  int64_t repeated = 0;  // trained again, because the weights went back to a checkpoint
  friend bool operator==(const RecordCounts&, const RecordCounts&) = default;
};

// One step's: those of its batches, and those that were dropped before them.
void Count(int64_t rows, bool finite, int64_t dropped, std::optional<RecordCounts>* counts);

// "trained=3000 dropped=24 repeated=0": in checkpoints and step files (docs/formats).
std::string Print(const RecordCounts& counts);
// DATA_LOSS.
absl::StatusOr<RecordCounts> ParseRecordCounts(std::string_view text);

}  // namespace muster::train
