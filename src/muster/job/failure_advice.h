// AdviceOn: what a person can do about a failed task, judged by its last output.
#pragma once

#include <string>
#include <vector>

namespace muster::job {

// A sentence without its full stop; "" if the lines hold no known error. Known are the errors of
// programs that were written for TensorFlow 1, or for tf.estimator, and ran with another version.
std::string AdviceOn(const std::vector<std::string>& last_lines);

}  // namespace muster::job
