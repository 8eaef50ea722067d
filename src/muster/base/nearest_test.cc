#include "muster/base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

const std::vector<std::string> kWords = {"boundaries", "buckets", "hash", "vocabulary"};

TEST(NearestTest, FindsATypo) {
  EXPECT_EQ(Nearest("bondaries", kWords), "boundaries");
  EXPECT_EQ(Nearest("Buckets", kWords), "buckets");
  EXPECT_EQ(Nearest("vocabluary", kWords), "vocabulary");
}

TEST(NearestTest, FindsAnAbbreviation) {
  EXPECT_EQ(Nearest("vocab", kWords), "vocabulary");
  EXPECT_EQ(Nearest("Bound", kWords), "boundaries");
  EXPECT_EQ(Nearest("vo", kWords), "");
}

TEST(NearestTest, FarWordsHaveNone) {
  EXPECT_EQ(Nearest("elephant", kWords), "");
  EXPECT_EQ(Nearest("", kWords), "");
  EXPECT_EQ(Nearest(std::string(1000, 'h'), kWords), "");
}

TEST(DidYouMeanTest, NamesTheWordOrTheList) {
  EXPECT_EQ(DidYouMean("hahs", kWords), " (did you mean 'hash'?)");
  EXPECT_EQ(DidYouMean("elephant", kWords), " (known: boundaries, buckets, hash, vocabulary)");
}

}  // namespace
}  // namespace muster
