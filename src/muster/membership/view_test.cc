#include "muster/membership/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;
using testing::HasSubstr;

TEST(ViewTest, OfTwoStatesOfOneStepTheLaterGenerationIsGreater) {
  View view = {.generation = 5,
               .members = {{.step = 7}, {.step = 7, .state_generation = 3}, {.step = 6}, {}},
               .replicas = 4};
  EXPECT_EQ(view.source(), 1);
  view.members[2].step = 8;
  EXPECT_EQ(view.source(), 2);
}

TEST(ViewTest, MessagesAreParsedAsTheyWerePrinted) {
  const Member member = {.id = {TaskId{TaskType::kWorker, 1}, 3},
                         .address = "tcp://h:1",
                         .step = 5,
                         .state_generation = 2};
  const Broken broken = {
      .generation = 4, .culprit = {TaskId{TaskType::kPs, 0}, 1}, .cause = "\"x\"", .planned = true};
  Broken seen = broken;
  seen.seen_by = member.id;
  const Message messages[] = {
      {},
      {.join = Join{.member = member, .last_generation = 3, .known_view = 2, .agreement = "a"}},
      {.failure = broken},
      {.failure = seen},
      {.leave = true},
      {.away = true},
      {.trained = true},
      {.view = View{.generation = 2, .members = {member}, .replicas = 1}},
      {.change = ViewChange{.generation = 3,
                            .base = 2,
                            .replicas = 1,
                            .gone = {TaskId{TaskType::kWorker, 4}},
                            .members = {member},
                            .states = {{.members = 2, .state = {.step = 7, .generation = 2}}}}},
      {.broken = broken},
      {.refused = "no"},
      {.waiting = "worker-1"}};
  for (const Message& message : messages) {
    const auto parsed = Parse(Print(message));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, message) << Print(message);
  }
}

TEST(ViewTest, InvalidMessagesAreRefused) {
  for (const char* text :
       {"", "[]", "{\"join\":{}}", "{\"join\":{\"task\":\"boss-1\"}}",
        "{\"view\":{\"epoch\":1,\"replicas\":2,\"members\":[]}}",
        "{\"view\":{\"epoch\":1,\"replicas\":2,\"members\":[{\"task\":"
        "\"worker-0\"}]}}",
        "{\"change\":{\"epoch\":2,\"gone\":[\"boss-1\"]}}",
        "{\"change\":{\"epoch\":2,\"states\":[{\"members\":0}]}}",
        "{\"change\":{\"epoch\":2,\"members\":[7]}}",
        "{\"view\":{\"replicas\":1,\"members\":[{\"task\":\"worker-0\"}]}}", "{\"leave\":1}"}) {
    EXPECT_EQ(Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace muster::membership
