#include "muster/engine/native/shared_sums.h"

#include <algorithm>

namespace muster::engine::native {

void SharedSums::Reserve(const Step& step, bool synchronized, int workers, int width) {
  scope_ = step.workers_are_replicas && !synchronized ? Scope::kWorker
           : step.others != nullptr && synchronized   ? Scope::kReplicas
                                                      : Scope::kCrew;
  width_ = static_cast<size_t>(width);
  for (std::vector<double>* all : {&shares_, &totals_, &means_}) {
    all->resize(static_cast<size_t>(workers) * width_);
  }
}

std::span<double> SharedSums::Clear(const Worker& worker) {
  const std::span<double> share = GetPart(worker, shares_);
  std::fill(share.begin(), share.end(), 0.0);
  return share;
}

void SharedSums::AddShares(std::span<double> total) const {
  std::fill(total.begin(), total.end(), 0.0);
  for (size_t at = 0; at < shares_.size(); at += width_) {
    for (size_t j = 0; j < width_; ++j) total[j] += shares_[at + j];
  }
}

std::span<const double> SharedSums::Mean(const Step& step, const Worker& worker) {
  std::span<const double> sum = GetPart(worker, shares_);
  double rows = worker.rows();
  if (scope_ == Scope::kCrew) {
    worker.crew->Barrier();
    // Every worker computes the total itself: that is quicker than waiting for one.
    const std::span<double> total = GetPart(worker, totals_);
    AddShares(total);
    sum = total;
    rows = step.batch->rows;
  } else if (scope_ == Scope::kReplicas) {
    worker.crew->Barrier();
    const std::span<double> total = std::span(totals_).first(width_);
    if (worker.index == 0) {
      AddShares(total);
      step.others->Add(total);
    }
    worker.crew->Barrier();
    sum = total;
    rows = step.others->rows();
  }
  const std::span<double> mean = GetPart(worker, means_);
  for (size_t j = 0; j < width_; ++j) mean[j] = sum[j] / std::max(rows, 1.0);
  return mean;
}

std::span<const double> SharedSums::Total() {
  const std::span<double> total = std::span(totals_).first(width_);
  AddShares(total);
  return total;
}

}  // namespace muster::engine::native
