// State: what a Metrics knows, as plain data and as bytes, so that one process can go on with what
// another has counted. docs/formats/metrics_state.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::metrics {

// A prediction beside its label of 0 or 1.
struct ScoredRow {
  float probability = 0;
  float label = 0;
  float weight = 0;
};

struct State {
  std::string head = {};  // of which metrics, in words: only the same can be merged
  // Of whoever evaluates; Metrics neither fills nor reads them.
  int64_t step = 0;   // global step of the weights
  uint64_t rows = 0;  // that were evaluated
  std::vector<double> sums = {};
  std::vector<std::vector<ScoredRow>> scored = {};  // in the order in which they came
};

std::string Serialize(const State& state);
// DATA_LOSS "WHERE: ..." for bytes that are cut, changed or no state. Lengths are checked before
// memory is taken.
absl::StatusOr<State> ParseState(std::string_view bytes, std::string_view where);

}  // namespace muster::metrics
