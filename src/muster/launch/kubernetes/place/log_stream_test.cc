#include "muster/launch/kubernetes/place/log_stream.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

TEST(LogSkipTest, WhatIsKnownIsLeftOut) {
  LogSkip skip(6, "one\nt");
  EXPECT_EQ(skip.Put("on"), "");
  EXPECT_EQ(skip.Put("e\ntwo"), "o");
  EXPECT_EQ(skip.Put("\nthree"), "\nthree");
  EXPECT_FALSE(skip.is_other());
}

TEST(LogSkipTest, ANewReaderGetsAll) {
  LogSkip skip(0, "");
  EXPECT_EQ(skip.Put("one"), "one");
  EXPECT_FALSE(skip.is_other());
}

TEST(LogSkipTest, ALogThatBeginsInAnotherWayWasRotated) {
  LogSkip skip(6, "one\nt");
  EXPECT_EQ(skip.Put("on"), "");
  EXPECT_EQ(skip.Put("ce upon"), "once upon");
  EXPECT_TRUE(skip.is_other());
  EXPECT_EQ(skip.Put(" a time"), " a time");
}

}  // namespace
}  // namespace muster::launch::kubernetes
