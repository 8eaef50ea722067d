// SharedSums: a sum per column that workers take apart and whose mean over rows each of them reads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {

// Sums are added up in the order of the workers, then of the replicas: the same bits everywhere.
class SharedSums {
 public:
  // Before a step. `synchronized`: over all replicas, where the step has such; else over the crew,
  // or each worker for itself where those are replicas.
  void Reserve(const Step& step, bool synchronized, int workers, int width);
  bool each_for_itself() const { return scope_ == Scope::kWorker; }

  // The worker's own, set to 0.
  std::span<double> Clear(const Worker& worker);
  // The sum by the number of its rows, 0 of none. Waits for whom it is shared with: each must call
  // it.
  std::span<const double> Mean(const Step& step, const Worker& worker);
  // Over the crew, behind the step.
  std::span<const double> Total();

 private:
  enum class Scope { kWorker, kCrew, kReplicas };

  std::span<double> PartOf(const Worker& worker, std::vector<double>& all) const {
    return std::span(all).subspan(static_cast<size_t>(worker.index) * width_, width_);
  }
  void AddShares(std::span<double> total) const;

  Scope scope_ = Scope::kCrew;
  size_t width_ = 0;
  std::vector<double> shares_, totals_, means_;  // of each worker
};

}  // namespace muster::engine::native
