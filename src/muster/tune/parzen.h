// ParzenEstimator: the density of the values of several parameters, as a mixture of one kernel for
// each observed point and a wide one for the whole space. A kernel is a product over parameters:
// truncated normals for numbers, raised chances for choices. A number's kernel is as wide as the
// distance to the farther neighbour among the observed ones.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/base/random.h"
#include "muster/tune/space.h"

namespace muster::tune {

class ParzenEstimator {
 public:
  // points[i] has the i-th observed value of each parameter, the oldest first: from 26 on, the
  // older ones weigh less.
  ParzenEstimator(std::vector<const Parameter*> parameters, const std::vector<Point>& points);

  // Draws one value of each parameter: the kernel from one stream, each value from its own one.
  Point Draw(RandomStream& kernels, std::vector<RandomStream>& values) const;
  // The logarithm of the density; of ints and choices it is a probability.
  double LogDensity(const Point& point) const;

 private:
  // One parameter, in all kernels.
  struct Marginal {
    const Parameter* parameter;
    double low = 0, high = 0;  // on the kernels' line; an int's with half a step on both sides
    std::vector<double> means = {}, widths = {}, masses = {};  // of numbers
    std::vector<int> observed = {};                            // of choices; -1: none
  };
  Marginal MakeMarginal(const Parameter& parameter, const std::vector<double>& values) const;
  double DrawFrom(const Marginal& marginal, size_t kernel, RandomStream& stream) const;
  // The logarithms of one value's densities in all kernels are added to *sums.
  void AddLogDensities(const Marginal& marginal, double value, std::vector<double>* sums) const;

  std::vector<double> weights_;  // of the kernels; they sum to 1
  std::vector<Marginal> marginals_;
};

}  // namespace muster::tune
