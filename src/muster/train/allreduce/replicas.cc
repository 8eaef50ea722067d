#include "muster/train/allreduce/replicas.h"

#include <algorithm>

namespace muster::train {

int ReplicaGeneration::source() const {
  // The lowest rank among those with the most advanced state.
  return static_cast<int>(std::max_element(states.begin(), states.end()) - states.begin());
}

StateTransfer ReplicaGeneration::GetTransfer() const {
  constexpr size_t kMostDonors = 4;
  const StateId& newest = states[static_cast<size_t>(source())];
  StateTransfer transfer;
  for (size_t rank = 0; rank < states.size(); ++rank) {
    const bool has_it = states[rank] == newest;
    if (!has_it) transfer.receivers.push_back(static_cast<int>(rank));
    if (has_it && transfer.donors.size() < kMostDonors) {
      transfer.donors.push_back(static_cast<int>(rank));
    }
  }
  return transfer;
}

}  // namespace muster::train
