#include "muster/train/input/record_counts.h"

#include <gtest/gtest.h>

namespace muster::train {
namespace {

TEST(RecordCountsTest, PrintsBackToTheParsedText) {
  const RecordCounts counts = {.trained = 3000, .dropped = 24, .repeated = 1};
  EXPECT_EQ(Print(counts), "trained=3000 dropped=24 repeated=1");
  EXPECT_EQ(ParseRecordCounts(Print(counts)).value(), counts);
  for (const char* const wrong :
       {"", "trained=1", "trained=-1 dropped=0 repeated=0", "trained=1 dropped=0 repeated=0 "}) {
    EXPECT_EQ(ParseRecordCounts(wrong).status().code(), absl::StatusCode::kDataLoss) << wrong;
  }
}

TEST(RecordCountsTest, ABatchWithoutAFiniteLossIsDropped) {
  std::optional<RecordCounts> counts = RecordCounts();
  Count(32, /*finite=*/true, 3, &counts);
  Count(16, /*finite=*/false, 0, &counts);
  EXPECT_EQ(*counts, (RecordCounts{.trained = 32, .dropped = 19}));
  counts.reset();
  Count(32, true, 0, &counts);
  EXPECT_FALSE(counts.has_value());
}

}  // namespace
}  // namespace muster::train
