// A warning about predictions that are no numbers: those of rows, or of a model, with numbers that
// are too large.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/engine/heads/prediction_filler.h"

namespace muster::cli {

// One owner thread.
class NotFinite {
 public:
  // Counts the rows of a batch, which have these keys, whose predictions are infinite or NaN.
  void Look(std::span<const std::string> keys, const engine::Predictions& predictions);
  // Prints the number of rows and the first one's key to stderr; nothing if there are none.
  void Warn() const;

 private:
  std::string first_;  // the key of the first one
  uint64_t count_ = 0;
};

}  // namespace muster::cli
