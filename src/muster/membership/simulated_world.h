// The world in which the members of simulated_members.h live: their processes, the clock, the views
// that hosts have sent, and the first violation. For tests of this layer only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/membership/roster.h"
#include "muster/membership/simulated_time.h"
#include "muster/membership/simulated_training.h"

namespace muster::membership {

// Bugs that are planted around the Roster, or in what members do.
struct Tamper {
  std::function<void(RosterSpec*)> spec = {};
  std::function<void(Message*)> in = {};
  std::function<void(std::vector<Roster::Outgoing>*)> out = {};
  bool takes_any_generations_parts = false;
  bool never_ticks = false;
};

class SimulatedWorld {
 protected:
  using Connection = Roster::Connection;
  using State = SimulatedState;
  struct Process : Sleeper {
    int task = 0;
    int64_t incarnation = 0;
    bool done = false;  // it was told that training is over, or was refused
    State state = {};
    int64_t last_generation = 0;
    Connection connection = 0;  // to the host; 0: none
    double heard_at = 0;        // when it last heard from the host
    bool joining = true, said = false;
    bool finishing = false;  // the chief has all steps
    std::optional<View> view = {};
    // What peers sent, by generation, also of generations that this process does not know yet.
    std::map<int64_t, State> given = {};
    std::map<int64_t, std::map<std::pair<int64_t, int>, uint64_t>> parts = {};
  };
  using ProcessPtr = std::shared_ptr<Process>;
  void Violated(std::string what) {
    if (violation_.empty()) violation_ = StrCat(std::move(what), ", at ", time_.now(), " s");
  }
  static job::TaskId GetId(int task) {
    if (task == 0) return {job::TaskType::kChief, 0};
    return {job::TaskType::kWorker, task - 1};
  }

  SimulatedWorld(uint64_t seed, Tamper tamper) : time_(seed), tamper_(std::move(tamper)) {}

  void CheckView(const View& view) {
    const auto known = views_.find(view.generation);
    if (known != views_.end()) {
      if (known->second.first != host_->incarnation)
        Violated("generations grow: one was given again");
      if (!(known->second.second == view))
        Violated(StrCat("one view: ", view.generation, " has two"));
      return;
    }
    if (!views_.empty() && view.generation <= views_.rbegin()->first) {
      Violated(StrCat("generations grow: ", view.generation, " after ", views_.rbegin()->first));
    }
    views_.emplace(view.generation, std::pair(host_->incarnation, view));
    for (const Member& member : view.members) {
      if (member.id.incarnation < joined_[member.id.task]) {
        Violated(StrCat("newest: ", Describe(member.id), " was replaced"));
      }
    }
  }
  void Failed(const std::string& why) {
    failed_ = true;
    if (lost_for_good_ < 0) return Violated(StrCat("named: it failed though all came: ", why));
    if (why.find(job::TaskName(GetId(lost_for_good_))) == why.npos) {
      Violated(StrCat("named: ", why));
    }
  }

  SimulatedTime time_;
  const Tamper tamper_;
  int lost_for_good_ = -1;
  ProcessPtr host_;
  std::map<job::TaskId, int64_t> joined_;  // the highest incarnation that joined at this host
  std::map<int64_t, std::pair<int64_t, View>>
      views_;  // by generation, with their host's incarnation
  bool failed_ = false;
  std::string violation_;
};

}  // namespace muster::membership
