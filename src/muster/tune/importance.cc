#include "muster/tune/importance.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace muster::tune {
namespace {

constexpr size_t kFewestTrials = 8;
// Numbers are divided into groups of equally many trials.
constexpr size_t kMostGroups = 5;
constexpr size_t kTrialsInGroup = 4;
constexpr int kAbsentGroup = -1;

struct Ranked {
  const Trial* trial;
  double rank;
};

// Equal values get the mean of their ranks.
std::vector<Ranked> RankByCost(const History& history, const Goal& goal) {
  std::vector<Ranked> ranked;
  for (const Trial& trial : history) {
    if (trial.value) ranked.push_back({&trial, 0});
  }
  const auto cost = [&goal](const Ranked& one) { return goal.Cost(*one.trial->value); };
  std::ranges::stable_sort(ranked, {}, cost);
  for (size_t first = 0; first < ranked.size();) {
    size_t end = first + 1;
    while (end < ranked.size() && cost(ranked[end]) == cost(ranked[first])) ++end;
    for (size_t i = first; i < end; ++i) ranked[i].rank = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranked;
}

// The group of each trial, by the parameter's value.
std::vector<int> GroupByValue(const Parameter& parameter, size_t index,
                              const std::vector<Ranked>& ranked) {
  std::vector<int> groups(ranked.size(), kAbsentGroup);
  std::vector<double> values;
  for (const Ranked& one : ranked) {
    if (!IsAbsent(one.trial->point[index])) values.push_back(one.trial->point[index]);
  }
  std::ranges::sort(values);
  const size_t count = std::clamp(values.size() / kTrialsInGroup, size_t{1}, kMostGroups);
  for (size_t i = 0; i < ranked.size(); ++i) {
    const double value = ranked[i].trial->point[index];
    if (IsAbsent(value)) continue;
    if (parameter.kind == Parameter::Kind::kChoice) {
      groups[i] = static_cast<int>(value);
    } else {
      const auto below = std::ranges::lower_bound(values, value) - values.begin();
      groups[i] = static_cast<int>(static_cast<size_t>(below) * count / values.size());
    }
  }
  return groups;
}

double EpsilonSquared(const std::vector<Ranked>& ranked, const std::vector<int>& groups) {
  std::map<int, std::pair<double, double>> sums;  // group -> trials, sum of ranks
  double total = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    sums[groups[i]].first += 1;
    sums[groups[i]].second += ranked[i].rank;
    total += ranked[i].rank;
  }
  const auto count = static_cast<double>(ranked.size());
  const double mean = total / count;
  double all = 0, between = 0;
  for (const Ranked& one : ranked) all += (one.rank - mean) * (one.rank - mean);
  for (const auto& [group, sum] : sums) {
    const double own = sum.second / sum.first;
    between += sum.first * (own - mean) * (own - mean);
  }
  const auto groups_less_one = static_cast<double>(sums.size()) - 1;
  const double left = count - groups_less_one - 1;
  if (all == 0 || left <= 0) return 0;
  return std::max(0.0, (between - groups_less_one * (all - between) / left) / all);
}

}  // namespace

std::vector<std::pair<std::string, double>> MeasureImportance(const Space& space,
                                                              const History& history,
                                                              const Goal& goal) {
  std::vector<std::pair<std::string, double>> importance;
  const std::vector<Ranked> ranked = RankByCost(history, goal);
  if (ranked.size() < kFewestTrials) return importance;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const std::vector<int> groups = GroupByValue(space.parameters[i], i, ranked);
    importance.emplace_back(space.parameters[i].name, EpsilonSquared(ranked, groups));
  }
  std::ranges::stable_sort(importance, std::ranges::greater(),
                           &std::pair<std::string, double>::second);
  return importance;
}

}  // namespace muster::tune
