#include "muster/features/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::features {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ScaleWatchTest : public testing::Test {
 protected:
  ScaleWatchTest() {
    spec_.columns.resize(3);
    spec_.columns[0].name = "gain";
    spec_.columns[0].input = "capital-gain";
    spec_.columns[1].name = "age";
    spec_.columns[1].input = "age";
    spec_.columns[2].name = "flagged";
    spec_.columns[2].input = "income";
    spec_.columns[2].missing_flag = true;
    request_.dense = {"age", "gain", "flagged"};
  }

  static FeatureBatch Batch(float age, float gain, float income, int rows) {
    FeatureBatch batch;
    batch.rows = rows;
    batch.dense.resize(3);
    for (int i = 0; i < rows; ++i) {
      batch.dense[0].values.push_back(age);
      batch.dense[1].values.push_back(gain);
      batch.dense[2].values.insert(batch.dense[2].values.end(), {income, 1e9F});
    }
    return batch;
  }

  FeatureSpec spec_;
  FeatureRequest request_;
};

TEST_F(ScaleWatchTest, WarnsAboutColumnsInTheThousandsWithTheLineToWrite) {
  ScaleWatch watch(spec_, request_, {});
  watch.Add(Batch(900, -2000, 3, 5000));
  EXPECT_THAT(watch.ConsumeWarnings(false), IsEmpty());
  watch.Add(Batch(900, 99999, 3, 5000));
  const auto warnings = watch.ConsumeWarnings(false);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("column 'gain' reaches the model with values up to 99999"));
  EXPECT_THAT(warnings[0], HasSubstr("gain: {numeric: \"capital-gain\", normalize: auto}"));
  EXPECT_THAT(watch.ConsumeWarnings(true), IsEmpty()) << "once";
}

TEST_F(ScaleWatchTest, ShortDataIsJudgedAtItsEnd) {
  ScaleWatch watch(spec_, request_, {});
  watch.Add(Batch(1, 1, 5000, 10));
  const auto warnings = watch.ConsumeWarnings(true);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("column 'flagged'"));
  EXPECT_THAT(warnings[0], HasSubstr("missing_flag: true"));
}

TEST_F(ScaleWatchTest, NormalisedColumnsAreNotChecked) {
  spec_.columns[2].normalize = true;
  ScaleWatch watch(spec_, request_, {"gain"});
  watch.Add(Batch(1, 99999, 99999, 10));
  EXPECT_THAT(watch.ConsumeWarnings(true), IsEmpty());
}

}  // namespace
}  // namespace muster::features
