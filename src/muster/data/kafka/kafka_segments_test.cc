#include "muster/data/kafka/kafka_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/strings.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kInFile = 3;

KafkaSegment Segment(std::vector<OffsetRange> ranges) {
  return {{.brokers = "b", .topic = "t", .ranges = std::move(ranges), .chunk = 7}};
}

TEST(LaterRangesTest, ContinueWhereTheSegmentBeforeEnds) {
  const auto later = FindLaterRanges("t", {{0, 5, 10}, {1, 0, 3}}, {{0, 2, 12}, {1, 3, 3}});
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(*later, ElementsAre(OffsetRange{0, 10, 12}, OffsetRange{1, 3, 3}));
}

TEST(LaterRangesTest, ANewPartitionIsTakenFromItsStart) {
  const auto later = FindLaterRanges("t", {{0, 5, 10}}, {{0, 5, 10}, {1, 4, 6}});
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(*later, ElementsAre(OffsetRange{0, 10, 10}, OffsetRange{1, 4, 6}));
}

TEST(LaterRangesTest, WhatIsNotThereIsAnError) {
  const auto removed = FindLaterRanges("t", {{3, 5, 10}}, {{3, 11, 20}});
  EXPECT_TRUE(absl::IsOutOfRange(removed.status()));
  EXPECT_THAT(ToStd(removed.status().message()),
              HasSubstr("t/3: offset 10 is wanted, but the first one that is kept is 11"));
  const auto lost = FindLaterRanges("t", {{3, 5, 10}}, {{3, 0, 9}});
  EXPECT_TRUE(absl::IsOutOfRange(lost.status()));
  EXPECT_THAT(ToStd(lost.status().message()),
              HasSubstr("t/3: offset 10 is wanted, but the partition ends at 9"));
}

TEST(CutToMultipleTest, TakesFromTheLastRanges) {
  KafkaSegment segment = Segment({{0, 0, 70}, {1, 10, 12}, {2, 0, 50}});
  segment.push_back({.brokers = "b", .topic = "u", .ranges = {{0, 8, 10}}, .chunk = 1});
  CutToMultiple(100, &segment);
  EXPECT_EQ(CountOffsets(segment), 100);
  EXPECT_THAT(segment[0].ranges,
              ElementsAre(OffsetRange{0, 0, 70}, OffsetRange{1, 10, 12}, OffsetRange{2, 0, 28}));
  EXPECT_THAT(segment[1].ranges, ElementsAre(OffsetRange{0, 8, 8}));
  CutToMultiple(30, &segment);
  EXPECT_THAT(segment[0].ranges,
              ElementsAre(OffsetRange{0, 0, 70}, OffsetRange{1, 10, 12}, OffsetRange{2, 0, 18}));
}

TEST(CutToMultipleTest, FewerThanOneMultipleStay) {
  KafkaSegment segment = Segment({{0, 0, 70}});
  CutToMultiple(71, &segment);
  EXPECT_EQ(CountOffsets(segment), 70);
  CutToMultiple(70, &segment);
  EXPECT_EQ(CountOffsets(segment), 70);
}

class SegmentRecordTest : public testing::Test {
 protected:
  // The segment from the record of another process.
  std::optional<KafkaSegment> Find(int64_t number) {
    auto found = SegmentRecord("m/stream", kInFile).Find(*files_, number);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : std::nullopt;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  SegmentRecord record_{"m/stream", kInFile};
};

TEST_F(SegmentRecordTest, KeepsSegmentsInSeveralFiles) {
  EXPECT_EQ(Find(0), std::nullopt);
  for (int64_t i = 0; i < kInFile + 2; ++i) {
    EXPECT_EQ(*record_.Find(*files_, i), std::nullopt);
    ASSERT_TRUE(record_.Append(*files_, i, Segment({{0, i, i + 1}})).ok());
    EXPECT_EQ(*record_.Find(*files_, i), Segment({{0, i, i + 1}}));
  }
  for (const int64_t i : {int64_t{0}, kInFile - 1, kInFile, kInFile + 1}) {
    EXPECT_EQ(Find(i), Segment({{0, i, i + 1}})) << i;
  }
  EXPECT_EQ(Find(kInFile + 2), std::nullopt);
  EXPECT_EQ(Find(3 * kInFile), std::nullopt);
  EXPECT_THAT(*files_->List("m/stream"),
              ElementsAre("segments-000000.json", "segments-000001.json"));
}

TEST_F(SegmentRecordTest, IsAsDocumented) {
  KafkaSegment two = Segment({{0, 0, 5}, {1, 2, 2}});
  two.push_back({.brokers = "b", .topic = "u", .ranges = {{0, 0, 1}}, .chunk = 9});
  ASSERT_TRUE(record_.Append(*files_, 0, Segment({{0, 0, 3}})).ok());
  ASSERT_TRUE(record_.Append(*files_, 1, two).ok());
  EXPECT_EQ(
      *io::ReadFile(*files_, "m/stream/segments-000000.json"),
      "[[\"kafka://b/t?ranges=0:0-3&chunk=7\"],\n"
      " [\"kafka://b/t?ranges=0:0-5,1:2-2&chunk=7\",\"kafka://b/u?ranges=0:0-1&chunk=9\"]]\n");
  EXPECT_EQ(Find(1), two);
}

TEST_F(SegmentRecordTest, ASegmentThatDoesNotFollowIsRefused) {
  EXPECT_FALSE(record_.Append(*files_, 1, Segment({{0, 0, 3}})).ok());
  ASSERT_TRUE(record_.Append(*files_, 0, Segment({{0, 0, 3}})).ok());
  EXPECT_FALSE(record_.Append(*files_, 0, Segment({{0, 0, 3}})).ok());
}

TEST_F(SegmentRecordTest, ClearRemovesAll) {
  ASSERT_TRUE(record_.Clear(*files_).ok());  // there is no folder yet
  for (int64_t i = 0; i <= kInFile; ++i) {
    ASSERT_TRUE(record_.Append(*files_, i, Segment({{0, i, i + 1}})).ok());
  }
  ASSERT_TRUE(record_.Clear(*files_).ok());
  EXPECT_EQ(*record_.Find(*files_, kInFile), std::nullopt);
  ASSERT_TRUE(record_.Append(*files_, 0, Segment({{0, 4, 9}})).ok());
  EXPECT_EQ(Find(0), Segment({{0, 4, 9}}));
  EXPECT_EQ(Find(kInFile), std::nullopt);
}

TEST_F(SegmentRecordTest, BrokenFilesAreRefused) {
  for (const char* const text : {"", "{", "{}", "[3]", "[[]]", "[[3]]", "[[\"kafka://b/t\"]]",
                                 "[[\"t?ranges=0:0-3\"]]", "[[\"kafka://b/t?ranges=0:0-3\"]]"}) {
    ASSERT_TRUE(files_->MakeFolders("m/stream").ok());
    ASSERT_TRUE(io::WriteFileAtomically(*files_, "m/stream/segments-000000.json", text).ok());
    const auto found = SegmentRecord("m/stream").Find(*files_, 0);
    EXPECT_TRUE(absl::IsDataLoss(found.status())) << text;
    EXPECT_THAT(ToStd(found.status().message()), HasSubstr("m/stream/segments-000000.json: "));
  }
}

}  // namespace
}  // namespace muster::data
