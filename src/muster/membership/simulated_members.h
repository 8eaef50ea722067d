// Members that train with the production Roster on a virtual clock and network. A history is made
// from a seed: members die at any message, with closed connections or silently (as if the machine
// vanished); any member may get SIGTERM; members restart, lose connections, cannot reach each other
// for a while, or sleep past the lease, with and without a replacement; the chief, which hosts the
// roster, dies; and some tasks never come back. A step is a hash of the parts of all ranks: as in
// train/allreduce/replicated_step.h, a member that has all parts of its generation applies the
// step, and other members take over the state of the most advanced one. These invariants are
// checked during a history and at its end:
//
//   generations grow
//                 a view's number is higher than that of every earlier view, by any host
//   one view      all members of a generation see the same view
//   newest        no view has an incarnation that its host knows to be replaced
//   one content   no two members, of any generation, apply different contents as the same step
//   state         each step, and the end, has the state that it has in the unbroken run
//   truth         no member is told that training is over before the chief has ended it
//   named         a failed training names the task that never came back; no other training fails
//   ends          every history ends
//
// For tests of this layer only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/membership/roster.h"
#include "muster/membership/simulated_world.h"

namespace muster::membership {

class SimulatedMembers : SimulatedWorld {
 public:
  explicit SimulatedMembers(uint64_t seed, Tamper tamper = {})
      : SimulatedWorld(seed, std::move(tamper)), training_(tasks_, kSteps) {}

  // Runs the history. Returns the first violation, "invariant: ...", or "" if there is none.
  std::string Run() {
    for (int task = 0; task < tasks_; ++task) Begin(task, time_.Uniform(0, 3));
    while (violation_.empty() && !Ended()) {
      if (time_.empty() || time_.now() > kLongest) return "ends: the history does not end";
      time_.RunNext();
      if (faults_.contains(++events_)) MakeFault();
    }
    if (violation_.empty() && !failed_ && saved_.step != kSteps)
      Violated("state: the final state is lost");
    return violation_;
  }
  int changes() const { return changes_; }

 private:
  // Processes.
  void Begin(int task, double delay) {
    time_.After(delay, nullptr, [this, task] {
      auto process = std::make_shared<Process>();
      process->task = task;
      process->incarnation = ++incarnations_[task];
      if (task == 0) process->state = saved_;
      processes_.push_back(process);
      if (task == lost_for_good_) {
        time_.After(time_.Uniform(0, 5), process, [this, process] { End(process, false); });
      }
      current_[task] = process;
      if (task == 0) BeginHost(process);
      Connect(process);
      Beat(process);
    });
  }
  void End(const ProcessPtr& process, bool silently) {
    process->alive = false;
    if (process == host_) EndHost();
    if (silently || process->connection == 0) return;
    const Connection connection = process->connection;
    time_.After(time_.Delay(), host_,
                [this, connection] { Closed(connection, "closed its connection"); });
    for (const ProcessPtr& each : processes_) {
      if (each->view)
        time_.After(time_.Delay(), each, [this, each, process] { OnPeerLost(each, *process); });
    }
  }
  void Restart(int task) {
    if (task != lost_for_good_) Begin(task, time_.Uniform(0.1, 15));
  }
  void MakeFault() {
    const auto task = static_cast<int>(time_.Below(static_cast<uint64_t>(tasks_)));
    const auto found = current_.find(task);
    if (found == current_.end() || !found->second->alive || found->second->done) return;
    const ProcessPtr process = found->second;
    switch (task == 0 ? time_.Below(6) : time_.Below(8)) {
      case 0:
      case 1:
        End(process, /*silently=*/time_.Below(3) == 0);
        Restart(task);
        break;
      case 2:
        process->asleep_until = time_.now() + time_.Uniform(0.1, 25);
        break;
      case 3:
        Disconnect(process);
        break;
      case 4:
        Terminate(process);
        break;
      case 5:
        CutNetwork(process);
        break;
      case 6:
        LoseLink(process);
        break;
      default:  // the process sleeps, counts as lost, and wakes up beside its replacement
        process->asleep_until = time_.now() + time_.Uniform(1, 40);
        Restart(task);
    }
  }
  // SIGTERM: the member tells the host and does no further step; the chief saves. Then it ends.
  void Terminate(const ProcessPtr& process) {
    if (process->finishing) return;
    Tell(process, {.away = true});
    process->view.reset();
    process->joining = false;
    if (process->task == 0) saved_ = process->state;
    time_.After(time_.Uniform(0, 2), process, [this, process] {
      End(process, /*silently=*/false);
      Restart(process->task);
    });
  }
  void Disconnect(const ProcessPtr& process) {
    const Connection connection = process->connection;
    if (connection == 0) return;
    time_.After(time_.Delay(), host_,
                [this, connection] { Closed(connection, "closed its connection"); });
    time_.After(time_.Delay(), process, [this, process, connection] {
      if (process->connection == connection) Lost(process);
    });
  }
  void LoseLink(const ProcessPtr& process) {
    if (!process->view) return;
    const auto peer = static_cast<int>(time_.Below(static_cast<uint64_t>(tasks_)));
    const ProcessPtr other = current_[peer];
    if (other == nullptr || other == process) return;
    time_.After(time_.Delay(), process, [this, process, other] { OnPeerLost(process, *other); });
    time_.After(time_.Delay(), other, [this, process, other] { OnPeerLost(other, *process); });
  }

  void Stall(const ProcessPtr& process, const ProcessPtr& peer) {
    if (!process->view) return;
    time_.After(kStall, process, [this, process, peer, generation = process->view->generation] {
      if (process->view && process->view->generation == generation) OnPeerLost(process, *peer);
    });
  }

  // The host.
  void BeginHost(const ProcessPtr& chief) {
    RosterSpec spec = {.lease_seconds = kLease,
                       .rendezvous_seconds = kRendezvous,
                       .first_generation = chief->incarnation * 1000};
    for (int task = 0; task < tasks_; ++task) spec.tasks.push_back(GetId(task));
    if (tamper_.spec) tamper_.spec(&spec);
    roster_.emplace(std::move(spec));
    host_ = chief;
    joined_.clear();
    Tick(chief);
  }
  void EndHost() {
    for (const auto& [connection, process] : connections_) {
      time_.After(time_.Delay(), process, [this, process = process, connection = connection] {
        if (process->connection == connection) Lost(process);
      });
    }
    connections_.clear();
    roster_.reset();
    host_ = nullptr;
  }
  void Tick(const ProcessPtr& chief) {
    if (!tamper_.never_ticks) Say(roster_->OnTick(time_.now()));
    if (chief == host_) time_.After(1, chief, [this, chief] { Tick(chief); });
  }
  void Closed(Connection connection, const char* cause) {
    if (connections_.erase(connection) != 0) Say(roster_->OnClosed(connection, cause, time_.now()));
  }
  void Hear(Connection from, Message message) {
    const auto found = connections_.find(from);
    if (found == connections_.end()) return;
    const ProcessPtr process = found->second;
    time_.At(time_.Arrival(from * 2), process,
             [this, process] { process->heard_at = time_.now(); });
    if (message.join) {
      int64_t& newest = joined_[message.join->member.id.task];
      newest = std::max(newest, message.join->member.id.incarnation);
    }
    if (tamper_.in) tamper_.in(&message);
    Say(roster_->OnMessage(from, message, time_.now()));
  }
  void Say(std::vector<Roster::Outgoing> outgoing) {
    if (tamper_.out) tamper_.out(&outgoing);
    for (const Roster::Outgoing& each : outgoing) {
      const auto found = connections_.find(each.to);
      if (found == connections_.end()) continue;
      const ProcessPtr process = found->second;
      if (each.message.view) CheckView(*each.message.view);
      if (each.message.change && roster_->view()) CheckView(*roster_->view());
      const double at = time_.Arrival(each.to * 2);
      time_.At(at, process, [this, process, each] {
        if (process->connection != each.to) return;
        Handle(process, each.message);
        if (each.close && !process->done) Lost(process);
      });
      if (!each.close) continue;
      time_.At(at, host_, [this, to = each.to] { Closed(to, ""); });
    }
    if (roster_ && !roster_->status().ok()) Failed(std::string(ToStd(roster_->status().message())));
  }

  // A member's side of membership (membership.cc).
  void Connect(const ProcessPtr& process) {
    if (process->done) return;
    if (host_ == nullptr || time_.now() < host_->asleep_until) {
      time_.After(time_.Uniform(0.1, 1), process, [this, process] { Connect(process); });
      return;
    }
    process->connection = ++last_connection_;
    process->heard_at = time_.now();
    connections_[process->connection] = process;
    if (process->joining) SendJoin(process);
  }
  void Tell(const ProcessPtr& process, Message message) {
    const Connection connection = process->connection;
    if (connection == 0) return;
    time_.At(time_.Arrival(connection * 2 + 1), host_,
             [this, connection, message = std::move(message)] { Hear(connection, message); });
  }
  void SendJoin(const ProcessPtr& process) {
    process->said = process->connection != 0;
    const Member member = {.id = {GetId(process->task), process->incarnation},
                           .address = "simulated",
                           .step = process->state.step};
    Tell(process, {.join = Join{.member = member,
                                .last_generation = process->last_generation,
                                .known_view = process->known ? process->known->generation : 0}});
  }
  void Beat(const ProcessPtr& process) {
    if (process->done) return;
    if (process->connection != 0) {
      if (time_.now() > process->heard_at + kLease) {
        Disconnect(process);
      } else {
        Tell(process, {});
      }
    }
    time_.After(1, process, [this, process] { Beat(process); });
  }
  void Lost(const ProcessPtr& process) {
    process->connection = 0;
    process->said = false;
    time_.After(time_.Uniform(0.05, 0.5), process, [this, process] { Connect(process); });
    if (process->view) JoinAnew(process, std::nullopt);
  }
  void JoinAnew(const ProcessPtr& process, const std::optional<Broken>& failure) {
    if (process->finishing || process->done) return;
    if (failure) Tell(process, {.failure = failure});
    process->view.reset();
    process->joining = true;
    process->said = false;
    if (process->connection != 0) SendJoin(process);
  }
  void Handle(const ProcessPtr& process, const Message& message) {
    if (process->done) return;
    if (message.leave) {
      process->done = true;
      if (!chief_ended_) Violated("truth: a member was told that training is over before it was");
    }
    if (!message.refused.empty()) process->done = true;
    std::optional<View> view = message.view;
    if (message.change) view = Change(process, *message.change);
    if (view) process->known = view;
    if (view && process->joining && process->said) Enter(process, *view);
    if (!message.broken || process->done) return;
    if (process->view) {
      JoinAnew(process, std::nullopt);
    }
  }
  // The member cannot reach a peer of its generation.
  void OnPeerLost(const ProcessPtr& process, const Process& peer) {
    if (!process->view) return;
    const MemberId id = {GetId(peer.task), peer.incarnation};
    const auto& members = process->view->members;
    if (std::none_of(members.begin(), members.end(), [&](const auto& m) { return m.id == id; })) {
      return;
    }
    JoinAnew(process, Broken{.generation = process->view->generation,
                             .culprit = id,
                             .cause = "closed its connection"});
  }

  // Training (train/allreduce/replicated_step.cc).
  void Enter(const ProcessPtr& process, const View& view) {
    if (view.generation <= process->last_generation)
      Violated("generations grow: a member joined an older one");
    process->last_generation = view.generation;
    process->view = view;
    process->joining = false;
    process->parts.erase(process->parts.begin(), process->parts.lower_bound(view.generation));
    const Member& source = view.members[static_cast<size_t>(view.source())];
    if (source.step < 0) Violated("state: no member of the view has one");
    if (source.id.task == GetId(process->task)) GiveState(process);
    if (process->state.step >= source.step) return Continue(process);
    AdoptState(process);
  }
  // Sends to the process that is in the view as `to`, after earlier messages to it.
  void Send(const ProcessPtr& from, const Member& to, std::function<void(const ProcessPtr&)> what) {
    for (const ProcessPtr& each : processes_) {
      if (GetId(each->task) != to.id.task || each->incarnation != to.id.incarnation) continue;
      if (IsCut(*from, *each)) {
        Stall(from, each);
        Stall(each, from);
        continue;
      }
      const auto line = (uint64_t{1} << 60) +
                        static_cast<uint64_t>(from->last_generation) * 10'000 +
                        static_cast<uint64_t>(from->task * 100 + each->task);
      time_.At(time_.Arrival(line), each, [each, what] { what(each); });
    }
  }
  void GiveState(const ProcessPtr& process) {
    const View view = *process->view;
    const State state = process->state;
    for (const Member& each : view.members) {
      if (each.step >= state.step) continue;
      Send(process, each, [this, state, generation = view.generation](const ProcessPtr& to) {
        to->given[generation] = state;
        if (to->view && to->view->generation == generation) AdoptState(to);
      });
    }
  }
  void AdoptState(const ProcessPtr& process) {
    const auto given = process->given.find(process->view->generation);
    if (given == process->given.end()) return;
    process->state = given->second;
    Continue(process);
  }
  void Continue(const ProcessPtr& process) {
    if (process->state.step == kSteps) {
      if (process->task == 0 && !process->finishing) Finish(process);
      return;
    }
    const View view = *process->view;
    const int rank = view.GetRank(GetId(process->task));
    const std::pair key = {process->state.step, rank};
    const uint64_t part = SimulatedTraining::GetPart(process->state, rank);
    for (const Member& each : view.members) {
      Send(process, each, [this, key, part, generation = view.generation](const ProcessPtr& to) {
        to->parts[tamper_.accepts_parts_of_any_generation ? 0 : generation][key] = part;
        Apply(to);
      });
    }
  }
  void Apply(const ProcessPtr& process) {
    if (!process->view) return;
    State& state = process->state;
    const auto& parts =
        process->parts[tamper_.accepts_parts_of_any_generation ? 0 : process->view->generation];
    uint64_t hash = state.hash;
    for (int rank = 0; rank < process->view->replicas; ++rank) {
      const auto part = parts.find({state.step, rank});
      if (part == parts.end()) return;
      hash = SimulatedTraining::Add(hash, part->second);
    }
    state = {state.step + 1, hash};
    const std::string wrong = training_.Applied(state);
    if (!wrong.empty()) Violated(StrCat(wrong, " by ", job::TaskName(GetId(process->task))));
    if (process->task == 0 && (state.step % 3 == 0 || state.step == kSteps)) saved_ = state;
    Continue(process);
  }
  void Finish(const ProcessPtr& chief) {
    chief->finishing = true;
    time_.After(time_.Uniform(0, 5), chief, [this, chief] {
      saved_ = chief->state;
      chief_ended_ = chief->done = true;
      lost_for_good_ = -1;
      Say(roster_->OnEnd(time_.now()));
    });
  }

  SimulatedTraining training_;
  int events_ = 0;
  std::map<int, int64_t> incarnations_;
  std::optional<Roster> roster_;
  std::map<Connection, ProcessPtr> connections_;
  Connection last_connection_ = 0;
  State saved_ = {0, 0};
};

}  // namespace muster::membership
