// The fixture that the tests of Roster share. For tests of this layer only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/membership/roster.h"

namespace muster::membership {

inline constexpr job::TaskId kChief = {job::TaskType::kChief, 0};
inline constexpr job::TaskId kWorker0 = {job::TaskType::kWorker, 0};
inline constexpr job::TaskId kWorker1 = {job::TaskType::kWorker, 1};
inline constexpr job::TaskId kPs = {job::TaskType::kPs, 0};
inline constexpr job::TaskId kEvaluator = {job::TaskType::kEvaluator, 0};

// A roster, and all messages that it has sent, by connection.
class RosterTest : public testing::Test {
 protected:
  void Open(RosterSpec spec) { roster_.emplace(std::move(spec)); }
  void OpenAll() { Open({.tasks = {kChief, kWorker0, kWorker1}}); }

  void Deliver(std::vector<Roster::Outgoing> outgoing) {
    for (Roster::Outgoing& each : outgoing) {
      sent_[each.to].push_back(std::move(each.message));
      if (each.close) closed_.insert(each.to);
    }
  }
  void Send(Roster::Connection from, const Message& message) {
    Deliver(roster_->OnMessage(from, message, now_));
  }
  void SendJoin(Roster::Connection from, job::TaskId task, int64_t step = -1,
                int64_t incarnation = 1, const std::string& agreement = "model 1") {
    Send(from, {.join = Join{.member = {.id = {task, incarnation}, .address = "a", .step = step},
                             .last_generation = last_generation_,
                             .known_view = known_view_,
                             .agreement = agreement}});
  }
  void Close(Roster::Connection from) {
    Deliver(roster_->OnClosed(from, "closed its connection", now_));
  }
  void Wait(double seconds) {
    for (double end = now_ + seconds; now_ < end;) {
      now_ = std::min(end, roster_->wake_at());
      Deliver(roster_->OnTick(now_));
    }
  }
  void Beat(Roster::Connection from) { Send(from, {}); }
  Message Last(Roster::Connection to) { return sent_[to].empty() ? Message() : sent_[to].back(); }
  // Makes a view of chief, worker-0 and worker-1 on connections 1, 2 and 3, and forgets the
  // messages so far.
  void Begin() {
    OpenAll();
    SendJoin(1, kChief, 0);
    SendJoin(2, kWorker0);
    SendJoin(3, kWorker1);
    ASSERT_TRUE(roster_->view());
    sent_.clear();
  }

  std::optional<Roster> roster_;
  std::map<Roster::Connection, std::vector<Message>> sent_;
  std::set<Roster::Connection> closed_;
  double now_ = 100;
  int64_t last_generation_ = 0;
  int64_t known_view_ = 0;  // of the members that join
};

}  // namespace muster::membership
