#include "muster/metrics/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "muster/base/crc32c.h"
#include "muster/metrics/metrics.h"

namespace muster::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;

State Example() {
  return {.head = "binary",
          .step = 7,
          .rows = 3,
          .bad_records = 2,
          .sums = {1, NAN, -0.5},
          .scored = {{{0.25, 1, 1}, {0.75, 0, 2}}, {}}};
}

// Appends a checksum that matches.
std::string Signed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  const uint32_t crc = Crc32c(bytes);
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

std::string Refusal(const std::string& bytes) {
  const absl::Status status = ParseState(bytes, "part-1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  return std::string(ToStd(status.message()));
}

TEST(StateTest, IsReadAsItWasWritten) {
  const std::string bytes = Serialize(Example());
  const auto parsed = ParseState(bytes, "state");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->head, "binary");
  EXPECT_EQ(parsed->step, 7);
  EXPECT_EQ(parsed->rows, 3);
  EXPECT_EQ(parsed->bad_records, 2);
  ASSERT_EQ(parsed->sums.size(), 3u);
  EXPECT_TRUE(std::isnan(parsed->sums[1]));
  ASSERT_EQ(parsed->scored.size(), 2u);
  EXPECT_EQ(parsed->scored[0][1].weight, 2);
  EXPECT_EQ(Serialize(*parsed), bytes);
  State grouped = Example();
  grouped.groups = {7, ~uint64_t{0}};
  EXPECT_EQ(ParseState(Serialize(grouped), "state")->groups, grouped.groups);
}

TEST(StateTest, BytesThatAreCutOrChangedAreRefused) {
  const std::string whole = Serialize(Example());
  for (size_t size = 0; size < whole.size(); ++size) Refusal(whole.substr(0, size));
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(Refusal(changed), HasSubstr("part-1: "));
  }
}

TEST(StateTest, LengthsAreCheckedBeforeMemoryIsAllocated) {
  const std::string whole = Serialize(Example());
  // The number of sums follows magic, version, head and its length, step, rows and bad records.
  const size_t sums = 8 + 4 + 4 + 6 + 8 + 8 + 8;
  // After the sums come the number of lists, and the number of rows of the first list.
  for (const size_t place : {sums, sums + 8 + 3 * 8, sums + 8 + 3 * 8 + 8}) {
    for (const uint64_t count : {uint64_t{4}, uint64_t{1} << 40, ~uint64_t{0}}) {
      std::string changed = whole;
      std::memcpy(changed.data() + place, &count, sizeof count);
      EXPECT_THAT(Refusal(Signed(changed)), HasSubstr("lengths")) << place << " " << count;
    }
  }
  std::string long_head = whole;
  const uint32_t size = 1 << 30;
  std::memcpy(long_head.data() + 12, &size, sizeof size);
  EXPECT_THAT(Refusal(Signed(long_head)), HasSubstr("head"));
  EXPECT_THAT(Refusal(Signed(whole.substr(0, whole.size() - 4) + "more" + whole.substr(0, 4))),
              HasSubstr("lengths"));
}

TEST(StateTest, AnUnknownVersionIsReported) {
  std::string bytes = Serialize(Example());
  bytes[8] = 4;
  EXPECT_THAT(Refusal(Signed(bytes)), HasSubstr("version 4"));
}

// Removes the number of groups, which lies before the checksum.
std::string WithoutGroups(std::string bytes) { return bytes.erase(bytes.size() - 12, 8); }

TEST(StateTest, VersionTwoHasNoGroups) {
  std::string bytes = WithoutGroups(Serialize(Example()));
  bytes[8] = 2;
  const auto parsed = ParseState(Signed(bytes), "state");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->bad_records, 2);
  EXPECT_EQ(parsed->scored[0][1].weight, 2);
  EXPECT_TRUE(parsed->groups.empty());
}

TEST(StateTest, VersionOneHasNoBadRecords) {
  std::string bytes = WithoutGroups(Serialize(Example()));
  bytes[8] = 1;
  bytes.erase(8 + 4 + 4 + 6 + 8 + 8, 8);
  const auto parsed = ParseState(Signed(bytes), "state");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->bad_records, 0);
  EXPECT_EQ(parsed->rows, 3);
  EXPECT_EQ(parsed->scored[0][1].weight, 2);
}

TEST(StateTest, StatesThatCannotBeMergedAreReported) {
  const auto metrics = NewMetrics({}, {}, {}).value();
  const State fits = metrics->GetState();
  const auto refusal = [&](const State& state) {
    const absl::Status status = metrics->Merge(state);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(ToStd(status.message()));
  };
  State other = fits;
  other.head = "regression of 1";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("[regression of 1]"), HasSubstr("[binary]")));
  other = fits;
  other.sums.pop_back();
  EXPECT_THAT(refusal(other), HasSubstr("8 sums"));
  other = fits;
  other.scored.emplace_back();
  EXPECT_THAT(refusal(other), HasSubstr("2 lists"));
  other = fits;
  other.scored[0] = {{0.5, 1, 1}};
  other.groups = {1, 2};
  EXPECT_THAT(refusal(other), HasSubstr("1 rows with 2 groups"));
  for (const float probability : {-1.0f, 2.0f, INFINITY}) {
    other = fits;
    other.scored[0] = {{probability, 1, 1}};
    EXPECT_THAT(refusal(other), HasSubstr("probability"));
  }
}

}  // namespace
}  // namespace muster::metrics
