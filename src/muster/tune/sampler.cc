#include "muster/tune/sampler.h"

#include <utility>

#include "muster/base/crc32c.h"

namespace muster::tune {
namespace {

constexpr size_t kMostGridPoints = 1'000'000;

class RandomSampler : public Sampler {
 public:
  RandomSampler(const Space& space, uint64_t seed) : space_(space), seed_(seed) {}
  std::optional<Point> Next(const History&, int64_t number) const override {
    return DrawPoint(space_, seed_, number);
  }

 private:
  const Space& space_;
  const uint64_t seed_;
};

class GridSampler : public Sampler {
 public:
  explicit GridSampler(std::vector<Point> points) : points_(std::move(points)) {}
  std::optional<Point> Next(const History&, int64_t number) const override {
    if (static_cast<size_t>(number) >= points_.size()) return std::nullopt;
    return points_[static_cast<size_t>(number)];
  }

 private:
  const std::vector<Point> points_;
};

// How many values of the parameter a grid takes; 0: infinitely many.
int64_t CountGridValues(const Parameter& parameter) {
  const int64_t count = CountValues(parameter);
  return count == 0 ? parameter.points : count;
}

absl::StatusOr<std::vector<double>> GridValues(const Parameter& parameter) {
  if (const std::string why = WhyNoGrid(parameter); !why.empty()) {
    return absl::InvalidArgumentError(StrCat("space.", parameter.name, ": ", why));
  }
  const bool is_infinite = CountValues(parameter) == 0;
  const int64_t count = CountGridValues(parameter);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<double>(i);
    // The ends of a range are among its points.
    if (is_infinite) {
      values.push_back(ValueAt(parameter, at / static_cast<double>(count - 1)));
    } else if (parameter.kind == Parameter::Kind::kInt) {
      values.push_back(parameter.low + at * static_cast<double>(parameter.step));
    } else {
      values.push_back(at);
    }
  }
  return values;
}

// All points, the last parameter fastest.
absl::StatusOr<std::vector<Point>> GridPoints(const Space& space) {
  std::vector<Point> points = {Point(space.parameters.size(), kAbsent)};
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<double> values, GridValues(space.parameters[i]));
    std::vector<Point> longer;
    for (const Point& point : points) {
      if (!space.Exists(i, point)) {
        longer.push_back(point);
        continue;
      }
      if (longer.size() + values.size() > kMostGridPoints) {
        return absl::InvalidArgumentError(
            StrCat("the grid has over ", kMostGridPoints, " points; give fewer values"));
      }
      for (const double value : values) {
        longer.push_back(point);
        longer.back()[i] = value;
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace

std::string WhyNoGrid(const Parameter& parameter) {
  const int64_t count = CountGridValues(parameter);
  if (count == 0) {
    return "a grid cannot try all numbers of a range; say how many, such as points: 5";
  }
  if (static_cast<size_t>(count) <= kMostGridPoints) return "";
  return StrCat("a grid has at most ", kMostGridPoints, " points");
}

RandomStream DrawsOf(uint64_t seed, int64_t trial, const std::string& parameter) {
  return {seed, RandomPurpose::kSearchPoint, static_cast<uint64_t>(trial), Crc32c(parameter)};
}

Point DrawPoint(const Space& space, uint64_t seed, int64_t trial) {
  Point point(space.parameters.size(), kAbsent);
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    if (!space.Exists(i, point)) continue;
    point[i] = ValueAt(parameter, DrawsOf(seed, trial, parameter.name).UniformDouble());
  }
  return point;
}

absl::StatusOr<std::unique_ptr<Sampler>> NewSampler(const SamplerSpec& spec, const Space& space,
                                                    const Goal& goal, uint64_t seed) {
  switch (spec.kind) {
    case SamplerSpec::Kind::kRandom:
      return std::make_unique<RandomSampler>(space, seed);
    case SamplerSpec::Kind::kGrid: {
      MUSTER_ASSIGN_OR_RETURN(std::vector<Point> points, GridPoints(space));
      return std::make_unique<GridSampler>(std::move(points));
    }
    case SamplerSpec::Kind::kTpe:
      return NewTpe(spec, space, goal, seed);
  }
  return absl::InternalError("no such sampler");
}

}  // namespace muster::tune
