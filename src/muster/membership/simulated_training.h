// The training of simulated members: a step's result depends on the state before it and every
// rank's part, so that a member that uses a wrong part, or another rank's, is detected. For tests
// of this layer only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/base/strings.h"

namespace muster::membership {

struct SimulatedState {
  int64_t step = -1;
  uint64_t hash = 0;
};

class SimulatedTraining {
 public:
  SimulatedTraining(int ranks, int64_t steps) {
    expected_.push_back(0);
    for (int64_t step = 0; step < steps; ++step) {
      const SimulatedState before = {step, expected_.back()};
      uint64_t hash = before.hash;
      for (int rank = 0; rank < ranks; ++rank) hash = Add(hash, GetPart(before, rank));
      expected_.push_back(hash);
    }
  }

  static uint64_t GetPart(const SimulatedState& state, int rank) {
    return Add(Add(state.hash, static_cast<uint64_t>(state.step)), static_cast<uint64_t>(rank));
  }
  static uint64_t Add(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15U)) + 0x632be59bd9b4e019U;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 32);
  }

  // Call when a member has applied a step. Returns the violation, "" for none.
  std::string Applied(const SimulatedState& state) {
    const auto [applied, first] = applied_.try_emplace(state.step, state.hash);
    if (applied->second != state.hash) return StrCat("one content: of step ", state.step);
    if (state.hash == expected_[static_cast<size_t>(state.step)]) return "";
    return StrCat("state: of step ", state.step);
  }

 private:
  std::vector<uint64_t> expected_;  // states of the unbroken run, by step
  std::map<int64_t, uint64_t> applied_;
};

}  // namespace muster::membership
