// SharedSums: column sums to which all workers contribute; each worker reads their mean over rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "muster/engine/native/layer.h"

namespace muster::engine::native {

// Sums are taken in the order of the workers, then of the replicas, so all get the same bits.
class SharedSums {
 public:
  // Called before a step. `synchronized`: sums are taken over all replicas, if there are others.
  // Otherwise they are taken over the crew, or for each worker alone if the workers are replicas.
  void Reserve(const Step& step, bool synchronized, int workers, int width);
  bool each_for_itself() const { return scope_ == Scope::kWorker; }

  // Returns the worker's own share, set to 0.
  std::span<double> Clear(const Worker& worker);
  // Returns the sum divided by its number of rows; 0 if there are no rows. Waits for the workers
  // and replicas that share the sum: each of them must call it.
  std::span<const double> Mean(const Step& step, const Worker& worker);
  // Returns the sum over the crew; called after the step.
  std::span<const double> Total();

 private:
  enum class Scope { kWorker, kCrew, kReplicas };

  std::span<double> GetPart(const Worker& worker, std::vector<double>& all) const {
    return std::span(all).subspan(static_cast<size_t>(worker.index) * width_, width_);
  }
  void AddShares(std::span<double> total) const;

  Scope scope_ = Scope::kCrew;
  size_t width_ = 0;
  std::vector<double> shares_, totals_, means_;  // one for each worker
};

}  // namespace muster::engine::native
