#include "muster/tune/history.h"

namespace muster::tune {

const char* StateName(TrialState state) {
  switch (state) {
    case TrialState::kRunning:
      return "running";
    case TrialState::kComplete:
      return "complete";
    case TrialState::kStopped:
      return "stopped";
    case TrialState::kFailed:
      return "failed";
  }
  return "";
}

const Trial* FindBest(const History& history, const Goal& goal) {
  for (const TrialState state : {TrialState::kComplete, TrialState::kStopped}) {
    const Trial* best = nullptr;
    for (const Trial& trial : history) {
      if (trial.state != state || !trial.value || std::isnan(*trial.value)) continue;
      if (best == nullptr || goal.Cost(*trial.value) < goal.Cost(*best->value)) best = &trial;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

}  // namespace muster::tune
