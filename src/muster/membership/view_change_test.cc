#include "muster/membership/view_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "muster/base/random.h"

namespace muster::membership {
namespace {

using job::TaskId;
using job::TaskType;
using testing::HasSubstr;
using testing::IsEmpty;

Member GetMember(TaskType type, int index, int64_t incarnation, StateId state = {}) {
  return {.id = {{type, index}, incarnation},
          .address = StrCat("tcp://host-", index, ":", incarnation),
          .step = state.step,
          .state_generation = state.generation};
}

View GetView(int64_t generation, int workers, StateId state) {
  View view = {.generation = generation, .replicas = workers + 1};
  view.members.push_back(GetMember(TaskType::kChief, 0, 1, state));
  for (int i = 0; i < workers; ++i) {
    view.members.push_back(GetMember(TaskType::kWorker, i, 1, state));
  }
  return view;
}

TEST(ViewChangeTest, AChangeHasOnlyWhatDiffers) {
  const View before = GetView(4, 5, {.step = 10, .generation = 3});
  View after = GetView(5, 5, {.step = 12, .generation = 4});
  EXPECT_THAT(GetChange(before, after).members, IsEmpty());
  after.members[3] = GetMember(TaskType::kWorker, 2, 2);
  after.members.pop_back();
  after.replicas = 5;
  const ViewChange change = GetChange(before, after);
  EXPECT_THAT(change.gone, testing::ElementsAre(TaskId{TaskType::kWorker, 4}));
  EXPECT_THAT(change.members, testing::ElementsAre(GetMember(TaskType::kWorker, 2, 2)));
  EXPECT_EQ(change.states.size(), 3u) << "those before worker-2, it, and those after it";
  EXPECT_EQ(ApplyChange(before, change).value(), after);
}

TEST(ViewChangeTest, AMemberOfWhichNothingIsSetIsNewToo) {
  const View before = GetView(4, 0, {});
  View after = before;
  after.generation = 5;
  after.members.emplace_back();
  SortMembers(&after.members);
  EXPECT_EQ(ApplyChange(before, GetChange(before, after)).value(), after);
}

TEST(ViewChangeTest, AnyViewIsMadeOfAnyOther) {
  RandomStream random(7, RandomPurpose::kSampleData, 1);
  const auto draw = [&](int64_t generation) {
    View view = {.generation = generation};
    for (const TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs}) {
      for (int i = 0; i < (type == TaskType::kChief ? 1 : 12); ++i) {
        if (type != TaskType::kChief && random.Below(3) == 0) continue;
        const auto incarnation = static_cast<int64_t>(random.Below(2));
        const StateId state = {.step = static_cast<int64_t>(random.Below(3)) - 1,
                               .generation = static_cast<int64_t>(random.Below(2))};
        view.members.push_back(GetMember(type, i, incarnation, state));
        view.replicas += type != TaskType::kPs;
      }
    }
    SortMembers(&view.members);
    return view;
  };
  for (int i = 0; i < 200; ++i) {
    const View before = draw(i + 1), after = draw(i + 2);
    const absl::StatusOr<Message> sent = Parse(Print({.change = GetChange(before, after)}));
    ASSERT_TRUE(sent.ok()) << sent.status();
    EXPECT_EQ(ApplyChange(before, *sent->change).value(), after);
  }
}

TEST(ViewChangeTest, AChangeThatDoesNotFitIsRefused) {
  const View before = GetView(4, 2, {.step = 1});
  const ViewChange good = GetChange(before, GetView(5, 2, {.step = 2}));
  ASSERT_TRUE(ApplyChange(before, good).ok());
  const auto refused = [&](const std::function<void(ViewChange*)>& spoil) {
    ViewChange change = good;
    spoil(&change);
    const absl::Status status = ApplyChange(before, change).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(ToStd(status.message()));
  };
  EXPECT_THAT(refused([](auto* change) { change->base = 3; }),
              HasSubstr("where this task has view 4"));
  EXPECT_THAT(refused([](auto* change) { change->generation = 4; }), HasSubstr("another one"));
  EXPECT_THAT(refused([](auto* change) {
                change->gone = {TaskId{TaskType::kPs, 0}};
              }),
              HasSubstr("not there"));
  EXPECT_THAT(refused([](auto* change) { change->replicas = 4; }), HasSubstr("more replicas"));
  EXPECT_THAT(refused([](auto* change) { change->states[0].members = 4; }),
              HasSubstr("states of more"));
  EXPECT_THAT(refused([](auto* change) { change->states[0].members = 2; }),
              HasSubstr("states of fewer"));
  EXPECT_THAT(refused([&](auto* change) {
                for (const Member& each : before.members) change->gone.push_back(each.id.task);
              }),
              HasSubstr("no or too many members"));
}

}  // namespace
}  // namespace muster::membership
