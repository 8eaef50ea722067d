// Mean: a mean over rows that arrive in batches.
#pragma once

namespace muster::train {

struct Mean {
  double sum = 0;
  double rows = 0;
  void Add(double mean, double n) {
    sum += mean * n;
    rows += n;
  }
  double value() const { return rows > 0 ? sum / rows : 0; }
};

}  // namespace muster::train
