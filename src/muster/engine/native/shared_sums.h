// SharedSums: column sums to which all workers contribute, and whose mean over rows each of them
// reads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {

// Sums are added up in the order of the workers, then of the replicas, so all get the same bits.
class SharedSums {
 public:
  // Called before a step. `synchronized`: sums over all replicas, if the step has others. Otherwise
  // sums over the crew, or per worker if the workers are replicas.
  void Reserve(const Step& step, bool synchronized, int workers, int width);
  bool each_for_itself() const { return scope_ == Scope::kWorker; }

  // The worker's own share, set to 0.
  std::span<double> Clear(const Worker& worker);
  // The sum divided by the number of its rows; 0 for no rows. Waits for the workers and replicas
  // that share the sum: each of them must call it.
  std::span<const double> Mean(const Step& step, const Worker& worker);
  // The sum over the crew, after the step.
  std::span<const double> Total();

 private:
  enum class Scope { kWorker, kCrew, kReplicas };

  std::span<double> GetPart(const Worker& worker, std::vector<double>& all) const {
    return std::span(all).subspan(static_cast<size_t>(worker.index) * width_, width_);
  }
  void AddShares(std::span<double> total) const;

  Scope scope_ = Scope::kCrew;
  size_t width_ = 0;
  std::vector<double> shares_, totals_, means_;  // of each worker
};

}  // namespace muster::engine::native
