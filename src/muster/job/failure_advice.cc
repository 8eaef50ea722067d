#include "muster/job/failure_advice.h"

#include <string_view>

#include "muster/base/strings.h"

namespace muster::job {
namespace {

constexpr std::string_view kModule = "module 'tensorflow";
constexpr std::string_view kMissing = "' has no attribute '";
constexpr std::string_view kVersionTwo = "._api.v2";

// Finds "tf.train.AdamOptimizer" in "module 'tensorflow._api.v2.train' has no attribute
// 'AdamOptimizer'". Returns "" for a line of another form.
std::string MissingName(std::string_view line) {
  const size_t begin = line.find(kModule);
  if (begin == std::string_view::npos) return "";
  std::string_view rest = line.substr(begin + kModule.size());
  const size_t end = rest.find(kMissing);
  if (end == std::string_view::npos) return "";
  std::string_view inner = rest.substr(0, end);
  if (inner.starts_with(kVersionTwo)) inner.remove_prefix(kVersionTwo.size());
  rest.remove_prefix(end + kMissing.size());
  return StrCat("tf", inner, ".", rest.substr(0, rest.find('\'')));
}

}  // namespace

std::string AdviceOn(const std::vector<std::string>& last_lines) {
  for (const std::string& line : last_lines) {
    if (line.find("No module named 'tensorflow.contrib'") != std::string::npos) {
      return "tf.contrib ended with TensorFlow 1.15: run the program with that TensorFlow, which "
             "needs Python 3.7 or older";
    }
    const std::string name = MissingName(line);
    if (name.empty()) continue;
    if (name == "tf.contrib") return AdviceOn({"No module named 'tensorflow.contrib'"});
    if (name == "tf.estimator") {
      return "TensorFlow has no tf.estimator from 2.16 on: run the program with 2.15 or older, or "
             "say 'import muster.tensorflow as tf' in it";
    }
    return StrCat("this TensorFlow has no ", name,
                  ": where the program was written for TensorFlow 1, say 'import "
                  "tensorflow.compat.v1 as tf' and 'tf.disable_v2_behavior()' in it, or run it "
                  "with the TensorFlow that it was written for");
  }
  return "";
}

}  // namespace muster::job
