#include "muster/train/loop/replica_rates.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace muster::train {
namespace {

constexpr double kForget = 0.01;   // of a mean, at each step
constexpr int kStepsToJudge = 20;  // the first steps are slower: caches are cold
constexpr double kStragglerTimes = 1.5;

}  // namespace

void ReplicaRates::Begin(std::vector<std::string> tasks) {
  means_.clear();
  for (std::string& task : tasks) means_.push_back({.task = std::move(task)});
  steps_ = 0;
}

void ReplicaRates::Add(std::span<const ReplicaWork> work) {
  // At first a plain mean of all steps.
  const double weight = std::max(kForget, 1.0 / ++steps_);
  for (size_t i = 0; i < means_.size() && i < work.size(); ++i) {
    means_[i].has_data = work[i].rows > 0;
    if (!means_[i].has_data) continue;
    means_[i].rows += weight * (work[i].rows - means_[i].rows);
    means_[i].seconds += weight * (work[i].seconds - means_[i].seconds);
  }
}

std::vector<ReplicaRates::Rate> ReplicaRates::rates() const {
  std::vector<Rate> rates;
  for (const Mean& mean : means_) {
    rates.push_back({mean.task, mean.seconds > 0 ? mean.rows / mean.seconds : 0});
  }
  return rates;
}

ReplicaRates::Straggler ReplicaRates::straggler() const {
  if (steps_ < kStepsToJudge) return {};
  std::vector<Mean> sorted = means_;
  std::erase_if(sorted, [](const Mean& mean) { return !mean.has_data; });
  if (sorted.size() < 2) return {};
  std::sort(sorted.begin(), sorted.end(),
            [](const Mean& a, const Mean& b) { return a.seconds < b.seconds; });
  const Mean& slowest = sorted.back();
  const double median = sorted[(sorted.size() - 1) / 2].seconds;
  if (median <= 0 || slowest.seconds < kStragglerTimes * median) return {};
  return {slowest.task, slowest.seconds / median};
}

}  // namespace muster::train
