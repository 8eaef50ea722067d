// The world in which the members of simulated_members.h live: their processes, the network
// between them, the views that hosts have sent, and when faults are made. For tests of this layer
// only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/simulation.h"
#include "muster/base/strings.h"
#include "muster/membership/roster.h"
#include "muster/membership/simulated_training.h"
#include "muster/membership/view_change.h"

namespace muster::membership {

// The bugs that a history plants around the Roster, or in what members do.
struct Tamper {
  std::function<void(RosterSpec*)> spec = {};
  std::function<void(Message*)> in = {};
  std::function<void(std::vector<Roster::Outgoing>*)> out = {};
  bool accepts_parts_of_any_generation = false;
  bool never_ticks = false;
};

class SimulatedWorld : protected SimulatedHistory {
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
    std::optional<View> known = {};  // the last that the host has sent
    // States and parts that peers sent, by generation; some may be newer than this process knows.
    std::map<int64_t, State> given = {};
    std::map<int64_t, std::map<std::pair<int64_t, int>, uint64_t>> parts = {};
  };
  using ProcessPtr = std::shared_ptr<Process>;
  static job::TaskId GetId(int task) {
    if (task == 0) return {job::TaskType::kChief, 0};
    return {job::TaskType::kWorker, task - 1};
  }

  SimulatedWorld(uint64_t seed, Tamper tamper)
      : SimulatedHistory(seed),
        tamper_(std::move(tamper)),
        tasks_(static_cast<int>(2 + time_.Below(3))) {
    PlanFaults();
  }

  static constexpr int64_t kSteps = 10;
  static constexpr double kLease = 10, kStall = 3, kRendezvous = 100, kLongest = 3000;

  void PlanFaults() {
    if (time_.Below(10) == 0) {
      lost_for_good_ = static_cast<int>(time_.Below(static_cast<uint64_t>(tasks_)));
    }
    // Waiting for a lost task takes many events.
    const uint64_t range = lost_for_good_ > 0 ? 1200 : 300;
    for (uint64_t n = time_.Below(9); n > 0; --n) {
      faults_.insert(static_cast<int>(time_.Below(range)));
    }
    if (lost_for_good_ == 0) lost_for_good_ = -1;  // only a chief can end the training
  }
  bool Ended() const {
    if (!chief_ended_ && !failed_) return false;
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const ProcessPtr& each) { return !each->alive || each->done; });
  }

  // Cuts the network between two members that both reach the host: nothing arrives for a while, and
  // no connection closes.
  void CutNetwork(const ProcessPtr& process) {
    const auto peer = static_cast<int>(time_.Below(static_cast<uint64_t>(tasks_)));
    if (peer == process->task) return;
    double& until = cut_until_[std::minmax(peer, process->task)];
    // Members that repeatedly cannot reach each other would make the training fail.
    if (time_.now() > until + kRendezvous) until = time_.now() + time_.Uniform(0.5, 4);
  }
  bool IsCut(const Process& a, const Process& b) const {
    const auto found = cut_until_.find(std::minmax(a.task, b.task));
    return found != cut_until_.end() && time_.now() < found->second;
  }

  void CheckView(const View& view) {
    const auto known = views_.find(view.generation);
    if (known != views_.end()) {
      if (known->second.first != host_->incarnation)
        Violated("generations grow: a number was used twice");
      if (!(known->second.second == view))
        Violated(StrCat("one view: generation ", view.generation, " has two"));
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
  // What a member makes of a change of its view.
  std::optional<View> Change(const ProcessPtr& process, const ViewChange& change) {
    if (!process->known) {
      Violated("one view: a member without a view got a change of one");
      return std::nullopt;
    }
    auto view = ApplyChange(*process->known, change);
    if (!view.ok()) {
      Violated(StrCat("one view: ", ToStd(view.status().message())));
      return std::nullopt;
    }
    ++changes_;
    const auto sent = views_.find(view->generation);
    if (sent == views_.end() || !(sent->second.second == *view)) {
      Violated(StrCat("one view: generation ", view->generation, " has two"));
    }
    return *std::move(view);
  }
  void Failed(const std::string& why) {
    failed_ = true;
    if (lost_for_good_ < 0)
      return Violated(StrCat("named: training failed although no task was lost for good: ", why));
    if (why.find(job::TaskName(GetId(lost_for_good_))) == why.npos) {
      Violated(StrCat("named: ", why));
    }
  }

  const Tamper tamper_;
  const int tasks_;
  std::set<int> faults_;  // the numbers of the events at which faults are made
  std::map<std::pair<int, int>, double> cut_until_;
  std::vector<ProcessPtr> processes_;
  std::map<int, ProcessPtr> current_;
  int lost_for_good_ = -1;
  ProcessPtr host_;
  std::map<job::TaskId, int64_t> joined_;  // the highest incarnation that joined at this host
  std::map<int64_t, std::pair<int64_t, View>>
      views_;        // by generation, with their host's incarnation
  int changes_ = 0;  // of views, which members got instead of whole ones
  bool failed_ = false, chief_ended_ = false;
};

}  // namespace muster::membership
