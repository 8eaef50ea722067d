// Checks whether a model reads its own label, and whether a training has learned at least the mean
// of its labels. If not, the run says so and names what to change.
//
// The rule: the means of predictions and labels over n rows differ by more than
//   - four standard errors sd(label) / sqrt(n), which predictions of the right mean exceed once in
//     16,000 checks; the residuals of predictions that are better than a constant deviate less;
//   - binary heads: a quarter of the share of the rarer class; regressions: so much that the
//     square of the difference is a quarter of the mean squared error. With many rows, smaller
//     differences are significant too, but no reason to act.
// Other heads are not checked.
#pragma once

#include <string>
#include <vector>

#include "muster/metrics/metrics.h"
#include "muster/model/spec/model_spec.h"

namespace muster::train {

// A run with fewer examples has not had the time to learn, and is not checked.
inline constexpr double kCheckedExamples = 10'000;

// Whether DescribeUnlearned has a rule for the model's head; models exported by Keras have none.
bool HasLearnedRule(const model::ModelSpec& model);

// Returns what is to be said of a model whose columns read its label, "" if none does: it learns
// to repeat the label, and knows nothing of rows that have none.
std::string DescribeLabelAsFeature(const model::ModelSpec& model);

// `metrics` are those of an evaluation over `rows` rows. Returns what is wrong, with the lines of
// the model file to change, or "" if nothing is.
std::string DescribeUnlearned(const model::ModelSpec& model,
                              const std::vector<metrics::NamedValue>& metrics, double rows);

}  // namespace muster::train
