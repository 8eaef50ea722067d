// Importance: which parameters of a study matter for its metric.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/tune/history.h"

namespace muster::tune {

// For each parameter the part, 0 to 1, of the variance of the trials' ranks by their values that
// groups of similar values of this parameter explain (epsilon squared, which chance alone makes 0
// on average); the greatest first. Interactions of parameters are not seen. Empty below 8 trials
// with a value.
std::vector<std::pair<std::string, double>> MeasureImportance(const Space& space,
                                                              const History& history,
                                                              const Goal& goal);

}  // namespace muster::tune
