// Whether a training has learned the mean of its labels, which is the least that it learns. A run
// that has not is told so with what to change.
//
// The rule: the means of predictions and labels over n rows differ by more than
//   - four standard errors sd(label) / sqrt(n), which predictions of the right mean exceed once in
//     16,000 checks; the residuals of predictions that are better than a constant deviate less;
//   - binary heads: a quarter of the share of the rarer class; regressions: so much that the
//     square of the difference is a quarter of the mean squared error. Smaller differences are
//     certain with many rows, and no reason to act.
// Other heads are not checked.
#pragma once

#include <string>
#include <vector>

#include "muster/metrics/metrics.h"
#include "muster/model/spec/model_spec.h"

namespace muster::train {

// Below so many examples a run has not had the time to learn, and is not checked.
inline constexpr double kCheckedExamples = 10'000;

// Whether DescribeUnlearned has a rule for the model's head; models exported by Keras have none.
bool HasLearnedRule(const model::ModelSpec& model);

// `metrics` are those of `rows` rows of data that the model should predict. Returns what is wrong,
// with the lines of the model file to change, or "".
std::string DescribeUnlearned(const model::ModelSpec& model,
                              const std::vector<metrics::NamedValue>& metrics, double rows);

}  // namespace muster::train
