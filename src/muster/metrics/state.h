// State: the contents of a Metrics, as plain data and as bytes, so that one process can continue
// another process's counts. See docs/formats/metrics_state.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::metrics {

// A prediction with its label of 0 or 1.
struct ScoredRow {
  float probability = 0;
  float label = 0;
  float weight = 0;
};

struct State {
  std::string head = {};  // describes the kind of metrics: only equal kinds can be merged
  // The program that evaluates sets these; Metrics neither fills nor reads them.
  int64_t step = 0;          // global step of the weights
  uint64_t rows = 0;         // number of evaluated rows
  uint64_t bad_records = 0;  // number of records left out
  std::vector<double> sums = {};
  std::vector<std::vector<ScoredRow>> scored = {};  // in order of arrival
  std::vector<uint64_t> groups = {};                // of the rows of scored[0]; may be empty
};

std::string Serialize(const State& state);
// Reads this version, version 2, which had no groups, and version 1, which had no bad_records
// either. DATA_LOSS "WHERE: ..." for bytes that are cut, changed or not a state. Lengths are
// checked before memory is allocated.
absl::StatusOr<State> ParseState(std::string_view bytes, std::string_view where);

}  // namespace muster::metrics
