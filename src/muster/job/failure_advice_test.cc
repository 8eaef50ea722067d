#include "muster/job/failure_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FailureAdviceTest, NamesThatTensorFlow2Removed) {
  const std::vector<std::string> lines = {
      "Traceback (most recent call last):",
      "  File \"model.py\", line 30, in model_fn",
      "AttributeError: module 'tensorflow' has no attribute 'placeholder'",
  };
  EXPECT_THAT(AdviceOn(lines), AllOf(HasSubstr("this TensorFlow has no tf.placeholder:"),
                                     HasSubstr("import tensorflow.compat.v1 as tf")));
  EXPECT_THAT(
      AdviceOn({"module 'tensorflow._api.v2.train' has no attribute 'AdamOptimizer'. Did you "
                "mean: ..."}),
      HasSubstr("no tf.train.AdamOptimizer:"));
  EXPECT_THAT(AdviceOn({"AttributeError: module 'tensorflow' has no attribute 'contrib'"}),
              HasSubstr("ended with TensorFlow 1.15"));
  EXPECT_THAT(AdviceOn({"ModuleNotFoundError: No module named 'tensorflow.contrib'"}),
              HasSubstr("ended with TensorFlow 1.15"));
  EXPECT_THAT(AdviceOn({"AttributeError: module 'tensorflow' has no attribute 'estimator'"}),
              HasSubstr("import muster.tensorflow as tf"));
}

TEST(FailureAdviceTest, OtherEndsSayNothing) {
  EXPECT_THAT(AdviceOn({}), IsEmpty());
  EXPECT_THAT(AdviceOn({"AttributeError: module 'numpy' has no attribute 'float'",
                        "module 'tensorflow", "KeyError: 'tensorflow'"}),
              IsEmpty());
}

}  // namespace
}  // namespace muster::job
