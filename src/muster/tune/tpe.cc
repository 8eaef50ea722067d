#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "muster/tune/parzen.h"
#include "muster/tune/sampler.h"

namespace muster::tune {
namespace {

// The part of the trials that counts as good: a tenth, at most 25.
constexpr double kGoodPart = 0.1;
constexpr size_t kMostGood = 25;

// Parameters that exist under the same condition: they are chosen together.
using Group = std::vector<size_t>;

std::vector<Group> MakeGroups(const Space& space) {
  std::vector<Group> groups;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    const auto found = std::ranges::find_if(groups, [&](const Group& group) {
      const Parameter& other = space.parameters[group.front()];
      return other.when == parameter.when && other.when_choices == parameter.when_choices;
    });
    if (found == groups.end()) {
      groups.push_back({i});
    } else {
      found->push_back(i);
    }
  }
  return groups;
}

class Tpe : public Sampler {
 public:
  Tpe(const SamplerSpec& spec, const Space& space, const Goal& goal, uint64_t seed)
      : spec_(spec), space_(space), groups_(MakeGroups(space)), goal_(goal), seed_(seed) {}

  std::optional<Point> Next(const History& history, int64_t number) const override {
    std::vector<const Trial*> good = Rank(history);
    if (good.size() < static_cast<size_t>(spec_.startup_trials)) {
      return DrawPoint(space_, seed_, number);
    }
    const auto tenth = static_cast<size_t>(std::ceil(kGoodPart * static_cast<double>(good.size())));
    const auto good_end = good.begin() + static_cast<std::ptrdiff_t>(std::min(tenth, kMostGood));
    std::vector<const Trial*> others(good_end, good.end());
    good.erase(good_end, good.end());
    // A trial that still runs counts as a bad one, so that others are not put beside it.
    for (const Trial& trial : history) {
      if (trial.state == TrialState::kRunning && trial.number != number) others.push_back(&trial);
    }
    // The estimators take the oldest value first.
    std::ranges::sort(good, IsOlder);
    std::ranges::sort(others, IsOlder);
    Point point(space_.parameters.size(), kAbsent);
    for (const Group& group : groups_) {
      if (space_.Exists(group.front(), point)) Choose(group, good, others, number, &point);
    }
    return point;
  }

 private:
  static bool IsOlder(const Trial* a, const Trial* b) { return a->number < b->number; }

  // The ended trials, the best first: complete ones, then stopped ones by how far they came.
  std::vector<const Trial*> Rank(const History& history) const {
    std::vector<const Trial*> ranked;
    for (const Trial& trial : history) {
      const bool ended =
          trial.state == TrialState::kComplete || trial.state == TrialState::kStopped;
      if (ended && trial.value) ranked.push_back(&trial);
    }
    const auto key = [this](const Trial* trial) {
      const bool stopped = trial->state == TrialState::kStopped;
      const int64_t resource =
          stopped && !trial->reports.empty() ? trial->reports.back().resource : 0;
      return std::tuple(stopped, -resource, goal_.Cost(*trial->value), trial->number);
    };
    std::ranges::sort(ranked, {}, key);
    return ranked;
  }

  // The group's values in the trials that have them.
  static std::vector<Point> Values(const Group& group, const std::vector<const Trial*>& trials) {
    std::vector<Point> points;
    for (const Trial* const trial : trials) {
      if (IsAbsent(trial->point[group.front()])) continue;
      Point& values = points.emplace_back();
      for (const size_t parameter : group) values.push_back(trial->point[parameter]);
    }
    return points;
  }

  // Chooses the candidate that is most likely among the good trials compared with the others.
  void Choose(const Group& group, const std::vector<const Trial*>& good,
              const std::vector<const Trial*>& others, int64_t number, Point* point) const {
    std::vector<const Parameter*> parameters;
    std::vector<RandomStream> streams;
    for (const size_t i : group) {
      parameters.push_back(&space_.parameters[i]);
      streams.push_back(DrawsOf(seed_, number, parameters.back()->name));
    }
    const ParzenEstimator below(parameters, Values(group, good));
    const ParzenEstimator above(parameters, Values(group, others));
    RandomStream kernels = DrawsOf(seed_, number, StrCat("kernel of ", parameters[0]->name));
    Point best;
    double best_score = 0;
    for (int i = 0; i < spec_.candidates; ++i) {
      Point candidate = below.Draw(kernels, streams);
      const double score = below.LogDensity(candidate) - above.LogDensity(candidate);
      if (i > 0 && !(score > best_score)) continue;
      best = std::move(candidate);
      best_score = score;
    }
    for (size_t i = 0; i < group.size(); ++i) (*point)[group[i]] = best[i];
  }

  const SamplerSpec spec_;
  const Space& space_;
  const std::vector<Group> groups_;
  const Goal goal_;
  const uint64_t seed_;
};

}  // namespace

std::unique_ptr<Sampler> NewTpe(const SamplerSpec& spec, const Space& space, const Goal& goal,
                                uint64_t seed) {
  return std::make_unique<Tpe>(spec, space, goal, seed);
}

}  // namespace muster::tune
