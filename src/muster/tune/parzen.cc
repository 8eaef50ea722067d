#include "muster/tune/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace muster::tune {
namespace {

using ParameterKind = Parameter::Kind;

// Points that weigh fully: the newest ones.
constexpr size_t kFullWeights = 25;
constexpr double kPriorWeight = 1;
constexpr double kMostKernelsForWidth = 100;
constexpr double kTiny = 1e-300;  // instead of a density of 0

double NormalCdf(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// The probability of a standard normal between a and b, without cancellation in the tails.
double NormalMass(double a, double b) {
  return a > 0 ? NormalCdf(-a) - NormalCdf(-b) : NormalCdf(b) - NormalCdf(a);
}

std::vector<double> MakeWeights(size_t points) {
  std::vector<double> weights(points, 1);
  if (points > kFullWeights) {
    const size_t ramp = points - kFullWeights;
    const double first = 1 / static_cast<double>(points);
    for (size_t i = 0; i < ramp; ++i) {
      const double part = ramp == 1 ? 0 : static_cast<double>(i) / static_cast<double>(ramp - 1);
      weights[i] = first + part * (1 - first);
    }
  }
  weights.push_back(kPriorWeight);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

double ToLine(const Parameter& parameter, double value) {
  return parameter.log ? std::log(value) : value;
}

// The width of each value's kernel.
std::vector<double> MakeWidths(const std::vector<double>& means, double low, double high) {
  std::vector<size_t> order(means.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return means[i]; });
  const double kernels = static_cast<double>(means.size()) + 1;
  const double narrowest = (high - low) / std::min(kMostKernelsForWidth, 1 + kernels);
  std::vector<double> widths(means.size());
  for (size_t at = 0; at < order.size(); ++at) {
    const double mean = means[order[at]];
    const bool is_first = at == 0, is_last = at + 1 == order.size();
    const double left = mean - (is_first ? low : means[order[at - 1]]);
    const double right = (is_last ? high : means[order[at + 1]]) - mean;
    double width = std::max(left, right);
    // The ends of the range are no neighbours, unless there is no other one.
    if (order.size() > 1 && is_first) width = right;
    if (order.size() > 1 && is_last) width = left;
    widths[order[at]] = std::clamp(width, narrowest, high - low);
  }
  return widths;
}

// The chance of a choice in a kernel whose point has it, and in one whose point has another.
struct ChoiceChances {
  double observed, other;
};
ChoiceChances GetChances(size_t choices, size_t kernels) {
  const double share = kPriorWeight / static_cast<double>(kernels);
  const double sum = share * static_cast<double>(choices) + 1;
  return {.observed = (1 + share) / sum, .other = share / sum};
}

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<const Parameter*> parameters,
                                 const std::vector<Point>& points)
    : weights_(MakeWeights(points.size())) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::vector<double> values;
    for (const Point& point : points) values.push_back(point[i]);
    marginals_.push_back(MakeMarginal(*parameters[i], values));
  }
}

ParzenEstimator::Marginal ParzenEstimator::MakeMarginal(const Parameter& parameter,
                                                        const std::vector<double>& values) const {
  Marginal marginal = {.parameter = &parameter};
  if (parameter.kind == ParameterKind::kChoice) {
    for (const double value : values) marginal.observed.push_back(static_cast<int>(value));
    marginal.observed.push_back(-1);
    return marginal;
  }
  double low = parameter.low, high = parameter.high;
  if (parameter.kind == ParameterKind::kInt) {
    const double half = static_cast<double>(parameter.step) / 2;
    high = low + static_cast<double>((CountValues(parameter) - 1) * parameter.step) + half;
    low = parameter.log && low <= half ? low / 2 : low - half;
  }
  marginal.low = ToLine(parameter, low);
  marginal.high = ToLine(parameter, high);
  for (const double value : values) marginal.means.push_back(ToLine(parameter, value));
  marginal.widths = MakeWidths(marginal.means, marginal.low, marginal.high);
  marginal.means.push_back((marginal.low + marginal.high) / 2);
  marginal.widths.push_back(marginal.high - marginal.low);
  for (size_t i = 0; i < marginal.means.size(); ++i) {
    marginal.masses.push_back(NormalMass((marginal.low - marginal.means[i]) / marginal.widths[i],
                                         (marginal.high - marginal.means[i]) / marginal.widths[i]));
  }
  return marginal;
}

Point ParzenEstimator::Draw(RandomStream& kernels, std::vector<RandomStream>& values) const {
  double uniform = kernels.UniformDouble();
  size_t kernel = 0;
  for (; kernel + 1 < weights_.size() && uniform >= weights_[kernel]; ++kernel) {
    uniform -= weights_[kernel];
  }
  Point point;
  for (size_t i = 0; i < marginals_.size(); ++i) {
    point.push_back(DrawFrom(marginals_[i], kernel, values[i]));
  }
  return point;
}

double ParzenEstimator::DrawFrom(const Marginal& marginal, size_t kernel,
                                 RandomStream& stream) const {
  const Parameter& parameter = *marginal.parameter;
  if (parameter.kind == ParameterKind::kChoice) {
    const size_t count = parameter.choices.size();
    const double uniform = stream.UniformDouble();
    const int observed = marginal.observed[kernel];
    if (observed < 0) return ValueAt(parameter, uniform);
    const ChoiceChances chances = GetChances(count, weights_.size());
    // What is left to the observed one beyond the share that each choice has.
    const double excess = chances.observed - chances.other;
    if (uniform < excess) return observed;
    return ValueAt(parameter, (uniform - excess) / (1 - excess));
  }
  // At least a third of the kernel's draws are within the range, since its mean is, and it is not
  // wider than the range.
  double at = 0;
  do {
    at = marginal.means[kernel] + marginal.widths[kernel] * stream.Normal();
  } while (at < marginal.low || at > marginal.high);
  const double value = parameter.log ? std::exp(at) : at;
  if (parameter.kind == ParameterKind::kNumber) {
    return std::clamp(value, parameter.low, parameter.high);
  }
  const auto step = static_cast<double>(parameter.step);
  const auto last = static_cast<double>(CountValues(parameter) - 1);
  return parameter.low + std::clamp(std::round((value - parameter.low) / step), 0.0, last) * step;
}

void ParzenEstimator::AddLogDensities(const Marginal& marginal, double value,
                                      std::vector<double>* sums) const {
  const Parameter& parameter = *marginal.parameter;
  const size_t kernels = weights_.size();
  if (parameter.kind == ParameterKind::kChoice) {
    const ChoiceChances chances = GetChances(parameter.choices.size(), kernels);
    const double log_observed = std::log(chances.observed), log_other = std::log(chances.other);
    for (size_t i = 0; i + 1 < kernels; ++i) {
      (*sums)[i] += marginal.observed[i] == static_cast<int>(value) ? log_observed : log_other;
    }
    sums->back() -= std::log(static_cast<double>(parameter.choices.size()));
    return;
  }
  if (parameter.kind == ParameterKind::kInt) {
    const double half = static_cast<double>(parameter.step) / 2;
    const double from =
        parameter.log && value <= half ? marginal.low : ToLine(parameter, value - half);
    const double to = ToLine(parameter, value + half);
    for (size_t i = 0; i < kernels; ++i) {
      const double mass = NormalMass((from - marginal.means[i]) / marginal.widths[i],
                                     (to - marginal.means[i]) / marginal.widths[i]);
      (*sums)[i] += std::log(mass / marginal.masses[i] + kTiny);
    }
    return;
  }
  const double at = ToLine(parameter, value);
  for (size_t i = 0; i < kernels; ++i) {
    const double z = (at - marginal.means[i]) / marginal.widths[i];
    (*sums)[i] -= z * z / 2 + std::log(marginal.widths[i] * marginal.masses[i] *
                                       std::sqrt(2 * std::numbers::pi));
  }
}

double ParzenEstimator::LogDensity(const Point& point) const {
  std::vector<double> sums;
  for (const double weight : weights_) sums.push_back(std::log(weight));
  for (size_t i = 0; i < marginals_.size(); ++i) AddLogDensities(marginals_[i], point[i], &sums);
  const double greatest = std::ranges::max(sums);
  double sum = 0;
  for (const double one : sums) sum += std::exp(one - greatest);
  return greatest + std::log(sum);
}

}  // namespace muster::tune
