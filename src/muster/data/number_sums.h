// NumberSums: count, range, mean and deviation of numbers that come one at a time.
#pragma once

#include <algorithm>
#include <cmath>

namespace muster::data {

// Uses Welford's method (1962), which never subtracts large sums.
struct NumberSums {
  double count = 0, mean = 0, squares = 0, min = 0, max = 0;

  void Add(double value) {
    min = count == 0 ? value : std::min(min, value);
    max = count == 0 ? value : std::max(max, value);
    const double delta = value - mean;
    mean += delta / ++count;
    squares += delta * (value - mean);
  }
  // Adds the numbers that `other` has seen, by Chan, Golub and LeVeque (1979).
  void Merge(const NumberSums& other) {
    if (other.count == 0) return;
    min = count == 0 ? other.min : std::min(min, other.min);
    max = count == 0 ? other.max : std::max(max, other.max);
    const double delta = other.mean - mean, all = count + other.count;
    squares += other.squares + delta * delta * count * other.count / all;
    mean += delta * other.count / all;
    count = all;
  }
  double stddev() const { return count > 0 ? std::sqrt(squares / count) : 0; }  // the population's
};

}  // namespace muster::data
