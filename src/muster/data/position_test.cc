#include <gtest/gtest.h>

#include "muster/data/reader.h"

namespace muster::data {
namespace {

Position SamplePosition() {
  Position position;
  position.source_fingerprint = 0xfedcba9876543210;
  position.seed = 18446744073709551615u;
  position.epoch = 3;
  position.emitted = 12345;
  position.next_ordinal = 9;
  position.open = {{.ordinal = 7, .consumed = 12}, {.ordinal = 8, .consumed = 0}};
  position.bad_records = 2;
  return position;
}

TEST(PositionTest, IsOneReadableLine) {
  EXPECT_EQ(SerializePosition(SamplePosition()),
            "muster-position-1 data=fedcba9876543210 seed=18446744073709551615 epoch=3 "
            "emitted=12345 next=9 bad=2 open=7:12,8:0 crc32c=f6e7374a");
}

TEST(PositionTest, WhatIsWrittenIsRead) {
  for (Position position : {SamplePosition(), Position{}}) {
    const auto parsed = ParsePosition(SerializePosition(position));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, position);
  }
}

TEST(PositionTest, AnyChangedByteAndAnyCutIsNoticed) {
  const std::string text = SerializePosition(SamplePosition());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    EXPECT_EQ(ParsePosition(changed).status().code(), absl::StatusCode::kDataLoss) << i;
    EXPECT_FALSE(ParsePosition(text.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(ParsePosition("").ok());
}

}  // namespace
}  // namespace muster::data
