#include "muster/tune/scheduler.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"

namespace muster::tune {
namespace {

class NoScheduler : public Scheduler {
  std::string WhyStop(const History&, const Trial&) const override { return ""; }
};

class Median : public Scheduler {
 public:
  Median(const SchedulerSpec& spec, const Goal& goal) : spec_(spec), goal_(goal) {}

  std::string WhyStop(const History& history, const Trial& trial) const override {
    const Report& newest = trial.reports.back();
    if (newest.resource < spec_.min_resource) return "";
    double best = HUGE_VAL;
    for (const Report& report : trial.reports) best = std::min(best, goal_.Cost(report.value));
    std::vector<double> others;
    for (const Trial& other : history) {
      if (other.number == trial.number || other.state != TrialState::kComplete) continue;
      if (const auto cost = CostAt(other, newest.resource)) others.push_back(*cost);
    }
    if (others.empty() || others.size() < static_cast<size_t>(spec_.startup_trials)) return "";
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    if (best <= *middle) return "";
    return absl::StrFormat("median: worse than half of %d trials at %d", others.size(),
                           newest.resource);
  }

 private:
  // The trial's newest value up to the resource.
  std::optional<double> CostAt(const Trial& trial, int64_t resource) const {
    std::optional<double> cost;
    for (const Report& report : trial.reports) {
      if (report.resource <= resource) cost = goal_.Cost(report.value);
    }
    return cost;
  }

  const SchedulerSpec spec_;
  const Goal goal_;
};

// Asynchronous successive halving, in one or several brackets.
class Halving : public Scheduler {
 public:
  Halving(const SchedulerSpec& spec, const Goal& goal) : spec_(spec), goal_(goal) {
    int brackets = 1;
    if (spec.kind == SchedulerSpec::Kind::kHyperband) {
      for (int64_t at = spec.min_resource; at * spec.factor <= spec.max_resource;
           at *= spec.factor) {
        ++brackets;
      }
    }
    // Brackets that begin earlier get more trials, so that all cost about the same.
    for (int bracket = 0; bracket < brackets; ++bracket) {
      const int halvings = brackets - 1 - bracket;
      const double trials = static_cast<double>(brackets) * std::pow(spec.factor, halvings) /
                            static_cast<double>(halvings + 1);
      shares_.push_back(static_cast<int64_t>(std::ceil(trials)));
      cycle_ += shares_.back();
    }
  }

  std::string WhyStop(const History& history, const Trial& trial) const override {
    const int bracket = GetBracket(trial.number);
    const int64_t reached = trial.reports.back().resource;
    const int64_t before =
        trial.reports.size() < 2 ? 0 : trial.reports[trial.reports.size() - 2].resource;
    const int64_t rung = LastRung(bracket, reached);
    if (rung == 0 || rung <= before) return "";  // it was decided there already
    if (spec_.kind == SchedulerSpec::Kind::kHyperband && reached >= spec_.max_resource) return "";
    std::vector<double> costs;
    for (const Trial& other : history) {
      if (GetBracket(other.number) != bracket) continue;
      if (const auto cost = CostAtRung(other, rung)) costs.push_back(*cost);
    }
    const size_t passing = std::max<size_t>(1, costs.size() / static_cast<size_t>(spec_.factor));
    const double own = goal_.Cost(trial.reports.back().value);
    const auto better = static_cast<size_t>(
        std::ranges::count_if(costs, [own](double cost) { return cost < own; }));
    if (better < passing && own != HUGE_VAL) return "";
    return absl::StrFormat("rung %d: %d of %d trials were better", rung, better, costs.size());
  }

 private:
  int GetBracket(int64_t trial) const {
    int64_t place = trial % cycle_;
    for (size_t bracket = 0; bracket < shares_.size(); ++bracket) {
      if (place < shares_[bracket]) return static_cast<int>(bracket);
      place -= shares_[bracket];
    }
    return 0;
  }

  // The last rung of the bracket up to the resource; 0 if there is none.
  int64_t LastRung(int bracket, int64_t resource) const {
    int64_t rung = spec_.min_resource;
    for (int i = 0; i < bracket; ++i) rung *= spec_.factor;
    if (rung > resource) return 0;
    while (rung <= resource / spec_.factor) rung *= spec_.factor;
    return rung;
  }

  // The trial's first value at or after the rung.
  std::optional<double> CostAtRung(const Trial& trial, int64_t rung) const {
    for (const Report& report : trial.reports) {
      if (report.resource >= rung) return goal_.Cost(report.value);
    }
    return std::nullopt;
  }

  const SchedulerSpec spec_;
  const Goal goal_;
  std::vector<int64_t> shares_;  // trials of each bracket, in a cycle
  int64_t cycle_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> NewScheduler(const SchedulerSpec& spec, const Goal& goal) {
  switch (spec.kind) {
    case SchedulerSpec::Kind::kNone:
    case SchedulerSpec::Kind::kPbt:
      return std::make_unique<NoScheduler>();
    case SchedulerSpec::Kind::kMedian:
      return std::make_unique<Median>(spec, goal);
    case SchedulerSpec::Kind::kAsha:
    case SchedulerSpec::Kind::kHyperband:
      return std::make_unique<Halving>(spec, goal);
  }
  return nullptr;
}

}  // namespace muster::tune
