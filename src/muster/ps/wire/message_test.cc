#include "muster/ps/wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using testing::ElementsAre;

Push SomePush(std::span<const int32_t> rows, std::span<const float> values,
              std::span<const uint32_t> given) {
  return {.generation = 3,
          .sequence = 17,
          .step = -1,
          .rows = 32,
          .loss = 0.5f,
          .position = "seven",
          .given = given,
          .dense = values,
          .tables = {{.variable = 1, .rows = rows, .values = values}, {.variable = 4}}};
}

TEST(MessageTest, APushIsParsedAsItWasPrinted) {
  const std::vector<int32_t> rows = {5, 0};
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<uint32_t> given = {1, 0};
  Bytes bytes;
  Print(SomePush(rows, values, given), &bytes);
  const auto push = Parse<Push>(bytes);
  ASSERT_TRUE(push.ok()) << push.status();
  EXPECT_EQ(push->sequence, 17);
  EXPECT_EQ(push->step, -1);
  EXPECT_EQ(push->loss, 0.5f);
  EXPECT_EQ(push->position, "seven");
  EXPECT_THAT(push->given, ElementsAre(1, 0));
  EXPECT_THAT(push->dense, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(push->tables.size(), 2u);
  EXPECT_EQ(push->tables[0].variable, 1u);
  EXPECT_THAT(push->tables[0].rows, ElementsAre(5, 0));
  EXPECT_THAT(push->tables[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(push->tables[1].rows.empty());
}

TEST(MessageTest, KeysAreParsedAsTheyWerePrinted) {
  const std::vector<float> values = {1, 2};
  Bytes bytes;
  Print(KeySlice{.generation = 3,
                 .variable = 1,
                 .first = 7,
                 .count = 9,
                 .keys = {-5, INT64_MIN},
                 .counts = {0, 2},
                 .last_steps = {4, 1},
                 .values = values},
        &bytes);
  const auto slice = Parse<KeySlice>(bytes);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->first, 7);
  EXPECT_EQ(slice->count, 9);
  EXPECT_THAT(slice->keys, ElementsAre(-5, INT64_MIN));
  EXPECT_THAT(slice->counts, ElementsAre(0, 2));
  EXPECT_THAT(slice->last_steps, ElementsAre(4, 1));
  EXPECT_THAT(slice->values, ElementsAre(1, 2));
  Print(Pull{.generation = 3, .tables = {{.variable = 1, .keys = {8, -8}}, {.variable = 2}}},
        &bytes);
  const auto pull = Parse<Pull>(bytes);
  ASSERT_TRUE(pull.ok()) << pull.status();
  EXPECT_THAT(pull->tables[0].keys, ElementsAre(8, -8));
  EXPECT_TRUE(pull->tables[1].keys.empty());
}

TEST(MessageTest, ACutOrTooLongMessageIsRefused) {
  const std::vector<int32_t> rows = {5, 0};
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<uint32_t> given = {1, 0};
  Bytes bytes;
  Print(SomePush(rows, values, given), &bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(Parse<Push>(cut).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  bytes.resize(bytes.size() + 4);
  EXPECT_FALSE(Parse<Push>(bytes).ok());
}

TEST(MessageTest, ALengthBeyondTheMessageAllocatesNoMemory) {
  Ready ready = {.generation = 1, .step = 2, .positions = {"a"}};
  Bytes bytes;
  Print(ready, &bytes);
  // The count of positions, then the length of the first one.
  for (const size_t at : {size_t{16}, size_t{24}}) {
    Bytes wrong = bytes;
    for (size_t i = 0; i < 8; ++i) wrong[at + i] = std::byte{0xff};
    EXPECT_FALSE(Parse<Ready>(wrong).ok()) << at;
  }
}

}  // namespace
}  // namespace muster::ps
