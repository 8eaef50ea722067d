#include "muster/tune/population.h"

#include <algorithm>
#include <cmath>

#include "muster/tune/sampler.h"

namespace muster::tune {
namespace {

// The factors by which a number changes, of section 4.1 of the paper.
constexpr double kDown = 0.8, kUp = 1.2;

// The trials of one member, the oldest first.
using Member = std::vector<const Trial*>;

// A trial that others are compared with. The cost is infinite if it failed or has no number.
struct Standing {
  const Trial* trial;
  double cost;
};

bool IsRunning(const Trial& trial) { return trial.state == TrialState::kRunning; }

std::vector<Member> GroupMembers(const History& history) {
  std::vector<Member> members;
  for (const Trial& trial : history) {
    if (trial.origin.member < 0) continue;
    const auto member = static_cast<size_t>(trial.origin.member);
    if (member >= members.size()) members.resize(member + 1);
    members[member].push_back(&trial);
  }
  return members;
}

// The member that is to train next; -1: all run.
int FindIdle(const std::vector<Member>& members) {
  int idle = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    if (IsRunning(*members[i].back())) continue;
    if (idle < 0 || members[i].size() < members[static_cast<size_t>(idle)].size()) {
      idle = static_cast<int>(i);
    }
  }
  return idle;
}

// A value near to `value`.
double Perturb(const Parameter& parameter, double value, bool up) {
  const auto step = static_cast<double>(parameter.step);
  double low = parameter.low, high = parameter.high;
  double next = value * (up ? kUp : kDown);
  switch (parameter.kind) {
    case Parameter::Kind::kChoice:  // the one before or after it
      low = 0;
      high = static_cast<double>(parameter.choices.size()) - 1;
      next = value + (up ? 1 : -1);
      break;
    case Parameter::Kind::kInt:
      high = low + std::floor((high - low) / step) * step;
      next = low + std::round((next - low) / step) * step;
      if (next == value) next += up ? step : -step;
      break;
    case Parameter::Kind::kNumber:
      break;
  }
  return std::clamp(next, low, high);
}

}  // namespace

std::optional<Successor> Population::Next(const History& history) const {
  const auto number = static_cast<int64_t>(history.size());
  const std::vector<Member> members = GroupMembers(history);
  if (members.size() < static_cast<size_t>(spec_.population)) {
    return Successor{.member = static_cast<int64_t>(members.size()),
                     .point = DrawPoint(space_, seed_, number)};
  }
  const int idle = FindIdle(members);
  if (idle < 0) return std::nullopt;
  const size_t generation = members[static_cast<size_t>(idle)].size();
  std::vector<Standing> ranked;  // the best first
  for (const Member& member : members) {
    size_t known = std::min(generation, member.size());
    if (known > 0 && IsRunning(*member[known - 1])) --known;
    if (known == 0) continue;
    const Trial& trial = *member[known - 1];
    const bool counts = trial.state != TrialState::kFailed && trial.value;
    ranked.push_back({&trial, counts ? goal_.Cost(*trial.value) : HUGE_VAL});
  }
  std::ranges::stable_sort(ranked, {}, &Standing::cost);
  const auto cut = std::max<size_t>(
      1, static_cast<size_t>(spec_.truncation * static_cast<double>(ranked.size())));
  const Trial& own = *members[static_cast<size_t>(idle)].back();
  const auto rank =
      static_cast<size_t>(std::ranges::find(ranked, &own, &Standing::trial) - ranked.begin());
  const bool is_lost = ranked[rank].cost == HUGE_VAL;
  if (!is_lost && (rank + cut < ranked.size() || ranked.size() < 2)) {
    return Successor{.member = idle, .parent = own.number, .point = own.point};
  }
  size_t sources = 0;  // of the best, those with a number
  while (sources < cut && ranked[sources].cost != HUGE_VAL) ++sources;
  if (sources == 0) return Successor{.member = idle, .point = DrawPoint(space_, seed_, number)};
  // No parameter has an empty name.
  const Trial& source = *ranked[DrawsOf(seed_, number, "").Below(sources)].trial;
  return Successor{.member = idle, .parent = source.number, .point = Explore(source.point, number)};
}

Point Population::Explore(const Point& point, int64_t trial) const {
  Point explored(space_.parameters.size(), kAbsent);
  for (size_t i = 0; i < explored.size(); ++i) {
    const Parameter& parameter = space_.parameters[i];
    if (!space_.Exists(i, explored)) continue;
    RandomStream draws = DrawsOf(seed_, trial, parameter.name);
    if (IsAbsent(point[i]) || draws.UniformDouble() < spec_.resample) {
      explored[i] = ValueAt(parameter, draws.UniformDouble());
    } else {
      explored[i] = Perturb(parameter, point[i], /*up=*/draws.Below(2) == 1);
    }
  }
  return explored;
}

std::vector<const Trial*> FindLineage(const History& history, const Trial& trial) {
  std::vector<const Trial*> lineage = {&trial};
  while (lineage.back()->origin.parent >= 0) {
    lineage.push_back(&history[static_cast<size_t>(lineage.back()->origin.parent)]);
  }
  std::ranges::reverse(lineage);
  return lineage;
}

}  // namespace muster::tune
