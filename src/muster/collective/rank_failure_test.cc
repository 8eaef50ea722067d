#include "muster/collective/rank_failure.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(RankFailureTest, IsParsedAsItWasFormatted) {
  const std::string lost =
      FormatRankFailure(RankName(2, "worker-1"), "read: gone", RankName(1, "worker-0"));
  EXPECT_EQ(lost, "rank 2 (worker-1): read: gone (seen by rank 1 (worker-0))");
  const auto failure = ParseRankFailure(lost);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 2);
  EXPECT_EQ(failure->cause, "read: gone");
  EXPECT_EQ(failure->seen_by, 1);
}

TEST(RankFailureTest, ARanksOwnFailureHasNoSeenBy) {
  const std::string own = FormatRankFailure(RankName(11, ""), "part-7 cannot be read", "");
  EXPECT_EQ(own, "rank 11: part-7 cannot be read");
  const auto failure = ParseRankFailure(own);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 11);
  EXPECT_EQ(failure->cause, "part-7 cannot be read");
  EXPECT_FALSE(failure->seen_by);
}

TEST(RankFailureTest, OtherTextIsRefused) {
  for (const char* text :
       {"", "rank", "rank : no number", "rank -1: negative", "rank 3", "ranks 3: x",
        "rank 99999999999999999999: too large", "the file is gone (seen by rank 1)"}) {
    EXPECT_FALSE(ParseRankFailure(text)) << text;
  }
}

TEST(RankFailureTest, SeenByMustNameARank) {
  const auto failure = ParseRankFailure("rank 1: the file is gone (seen by a user)");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, "the file is gone (seen by a user)");
  EXPECT_FALSE(failure->seen_by);
}

}  // namespace
}  // namespace muster::collective
