// RecordCounts: counts of the records of a training since its first step. The counts belong to the
// training's state: a task that gets the state from another replica or a checkpoint gets the counts
// too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::train {

struct RecordCounts {
  int64_t trained = 0;  // in the weights; a record counts each time that it is trained on
  int64_t dropped = 0;  // read and not trained: the rest of an epoch, a batch without a finite loss
  int64_t repeated = 0;  // trained again, because the weights went back to a checkpoint
  friend bool operator==(const RecordCounts&, const RecordCounts&) = default;
};

// Counts one step: `rows` of its batches, which are trained if the loss is `finite`, else dropped;
// and `dropped` records before these batches. Does nothing if *counts is empty.
void Count(int64_t rows, bool finite, int64_t dropped, std::optional<RecordCounts>* counts);

// "trained=3000 dropped=24 repeated=0", as in checkpoints and step files (docs/formats).
std::string Print(const RecordCounts& counts);
// DATA_LOSS for any other text.
absl::StatusOr<RecordCounts> ParseRecordCounts(std::string_view text);

}  // namespace muster::train
