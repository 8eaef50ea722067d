// A job by slots in which everything misbehaves: seeded histories of coordinators and providers
// that die and are started again, providers that were replaced and still act, messages that are
// lost, late and repeated, machines that are cut off, slots that fail. The SlotTable under test
// decides; around it is as much of a coordinator as its promise needs (leases, a journal, passes).
//
//   once         an incarnation's task is started at most once
//   one live     two incarnations of one task never run at the same time
//   truth        an incarnation that is observed to have ended never runs later
//   progress     once nothing misbehaves any more, every task runs
//   nothing left when the job has ended, no slot is left and the provider has ended
//
// For tests of this layer only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/launch/slots/slot_table.h"

namespace muster::launch::slots {

// Faults planted into the decisions, to see that the invariants catch them.
struct Tampering {
  std::function<void(ProviderReport*, int64_t newest_attempt)> report = {};  // before it is taken
  std::function<void(int64_t*)> wanted_up_to = {};                           // before it is kept
  std::function<Admission(Admission, bool runs)> admission = {};
  std::function<void(std::vector<job::TaskObservation>*, const std::set<std::string>& seen)>
      observed = {};
  std::function<void(ProviderAnswer*, const ProviderReport&)> answer = {};
};

class SlotSimulation {
 public:
  SlotSimulation(uint64_t seed, Tampering tampering)
      : random_(seed), tampering_(std::move(tampering)) {
    const int tasks = Int(1, 3);
    for (int i = 0; i < tasks; ++i) journal_[{job::TaskType::kWorker, i}];
    faults_until_ = Uniform(20, 250);
    StartCoordinator();
    StartProvider();
    At(Uniform(5, 60), [this] { PlayCoordinatorDeath(); });
    At(Uniform(5, 60), [this] { PlayProviderDeath(); });
    At(Uniform(5, 60), [this] { PlayCut(); });
    At(Uniform(2, 30), [this] { PlayStop(); });
  }

  // The first invariant that does not hold; "" for none.
  std::string Run() {
    while (violation_.empty() && !events_.empty() && !done_) {
      const auto next = events_.begin();
      time_ = next->first;
      if (time_ > faults_until_ + kPatience) {
        Fail(StrCat(final_at_ ? "nothing left" : "progress", ": not after ", kPatience,
                    " s without faults"));
      }
      const auto act = std::move(next->second);
      events_.erase(next);
      act();
    }
    if (violation_.empty() && !done_) violation_ = "progress: nothing happens any more";
    return violation_;
  }

 private:
  using Key = std::pair<job::TaskId, int64_t>;
  static constexpr double kLease = 10, kGone = 16, kEndSeconds = 4, kPatience = 600;
  static constexpr double kLostAfter = 60;  // the platform gives a machine up

  struct JournalTask {
    int64_t incarnation = 0;
    bool live = false, stopping = false;
  };
  struct Provider {
    int64_t attempt = 0, sequence = 0, acted = 0;
    bool alive = true;
    std::map<std::string, Slot> slots = {};
  };
  struct Agent {
    std::string slot = {};
    Key key = {};
    enum class State { kWaiting, kRunning, kEnded } state = State::kWaiting;
    double heard_at = 0;  // when it sent the report that was answered last
    double cut_until = 0;
    bool hangs = false;   // before its task: it says nothing, and ends only when it is killed
    int64_t attempt = 0;  // of the provider that started it
  };
  struct Known {  // of an agent, by the coordinator
    std::optional<double> answered_at;
    std::optional<double> heard_at;
    double asked_at = 0;
    bool killed = false;
  };

  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  double Uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }
  int Int(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  bool faulty() const { return time_ < faults_until_; }
  void At(double seconds, std::function<void()> act) {
    events_.emplace(time_ + seconds, std::move(act));
  }
  void Fail(const std::string& text) {
    if (violation_.empty()) violation_ = text;
  }
  static std::string Name(const Key& key) {
    return StrCat(job::TaskName(key.first), ".", key.second);
  }

  // Sends a message, which arrives mostly soon, but sometimes late, twice or never.
  void Send(const std::function<void()>& arrive) {
    if (!faulty()) return At(Uniform(0.001, 0.05), arrive);
    if (Chance(0.1)) return;
    At(Chance(0.15) ? Uniform(0.5, 30) : Uniform(0.001, 0.3), arrive);
    if (Chance(0.1)) At(Uniform(0.1, 40), arrive);
  }

  // --- the coordinator ---

  void StartCoordinator() {
    table_ = std::make_unique<SlotTable>(wanted_up_to_, time_, kGone);
    ++life_;
    known_.clear();
    passed_ = false;
    for (const auto& [task, status] : journal_) {
      if (!status.live) continue;
      Known& known = known_[{task, status.incarnation}];
      known.answered_at = known.asked_at = time_;
      known.heard_at = time_;
    }
    At(0, [this, life = life_] { Pass(life); });
  }

  void PlayCoordinatorDeath() {
    if (!faulty()) return;
    table_.reset();
    ++life_;
    At(Uniform(0.1, 20), [this] { StartCoordinator(); });
    At(Uniform(25, 120), [this] { PlayCoordinatorDeath(); });
  }

  void PlayStop() {  // the task was seen to fail or hang, or a gang starts again
    if (!faulty()) return;
    for (auto& [task, status] : journal_) {
      if (status.live && Chance(0.5)) status.stopping = true;
    }
    At(Uniform(2, 60), [this] { PlayStop(); });
  }

  void Pass(int life) {
    if (life != life_ || table_ == nullptr) return;
    At(Uniform(0.2, 1), [this, life] { Pass(life); });
    std::vector<job::TaskObservation> observed = table_->Observe(time_);
    if (tampering_.observed) tampering_.observed(&observed, SeenNames());
    for (const job::TaskObservation& each : observed) {
      const Key key{each.id, each.incarnation};
      const bool over = each.phase == job::TaskObservation::Phase::kEnded ||
                        each.phase == job::TaskObservation::Phase::kGone;
      if (over) Ended(key, "observed");
      const auto known = known_.find(key);
      if (over || known == known_.end() || !known->second.killed) continue;
      // The coordinator's own rule for what its launcher cannot see.
      const auto& answered = known->second.answered_at;
      if (!answered || time_ >= *answered + kGone) Ended(key, "by its lease");
    }
    CheckLeases();
    for (auto& [task, status] : journal_) Act(task, status);
    passed_ = true;
    LookForEnd();
  }

  void CheckLeases() {
    for (auto& [key, known] : known_) {
      const bool silent = known.heard_at && time_ > *known.heard_at + kLease + 1;
      const bool never_came = !known.heard_at && time_ > known.asked_at + 60;
      if (!known.killed && (silent || never_came)) {
        known.killed = true;
        table_->Kill(key.first, key.second);
      }
    }
  }

  void Act(job::TaskId task, JournalTask& status) {
    if (status.live && status.stopping) {
      Known& known = known_[{task, status.incarnation}];
      known.killed = true;
      table_->Kill(task, status.incarnation);
    }
    if (!status.live && !final_at_) {
      status = {.incarnation = ++next_incarnation_, .live = true};  // durable before it acts
    }
    if (!status.live || status.stopping) return;
    Known& known = known_[{task, status.incarnation}];
    if (known.asked_at == 0) known.asked_at = time_;
    if (known.killed) return;
    WantedSlot wanted;
    wanted.task = task;
    wanted.incarnation = status.incarnation;
    table_->Want(wanted);
  }

  void Ended(const Key& key, const char* how) {
    ended_.insert(key);
    for (const auto& [slot, agent] : agents_) {
      if (agent.key == key && agent.state == Agent::State::kRunning) {
        Fail(StrCat("truth: ", Name(key), " has ended, ", how, ", and runs in ", slot));
      }
    }
    JournalTask& status = journal_[key.first];
    if (status.incarnation == key.second) status.live = status.stopping = false;
  }

  // Once all tasks run and nothing misbehaves, the job has succeeded.
  void LookForEnd() {
    if (faulty() || final_at_) return;
    for (const auto& [task, status] : journal_) {
      const bool runs =
          std::any_of(agents_.begin(), agents_.end(), [&, id = task](const auto& item) {
            return item.second.key == Key{id, journal_.at(id).incarnation} &&
                   item.second.state == Agent::State::kRunning;
          });
      if (!runs) return;
    }
    final_at_ = time_;
    table_->SetFinal("succeeded");
    for (auto& [task, status] : journal_) status.stopping = true;
  }

  void HandleReport(ProviderReport report, int64_t attempt) {
    if (table_ == nullptr || !passed_) return;
    if (final_at_) table_->SetFinal("succeeded");
    if (tampering_.report) tampering_.report(&report, newest_heard_);
    ProviderAnswer answer = table_->Take(report, time_);
    if (tampering_.answer) tampering_.answer(&answer, report);
    newest_heard_ = std::max(newest_heard_, attempt);
    wanted_up_to_ = table_->wanted_up_to();
    if (tampering_.wanted_up_to) tampering_.wanted_up_to(&wanted_up_to_);
    Send([this, answer, attempt] { TakeAnswer(answer, attempt); });
  }

  // Takes a report of an agent, which it sent at the time `sent`.
  void TakeAgent(const std::string& slot, Key key, bool runs, bool ended, double sent) {
    if (table_ == nullptr || !passed_) return;
    Admission admission = table_->Admits(key.first, key.second, slot, runs);
    if (tampering_.admission) admission = tampering_.admission(admission, runs);
    if (admission == Admission::kNotYet) return;
    Known& known = known_[key];
    const JournalTask& status = journal_[key.first];
    const bool is_current = status.incarnation == key.second && status.live;
    const bool stop = admission == Admission::kNo || !is_current || known.killed;
    if (admission == Admission::kYes) {
      known.heard_at = time_;
      if (!known.killed) known.answered_at = time_;
    }
    if (ended && is_current && admission == Admission::kYes) return Ended(key, "by its agent");
    const bool start = !stop && !runs;
    Send([this, slot, start, stop, sent] { TakeOrder(slot, start, stop, sent); });
  }

  // --- providers ---

  void StartProvider() {
    Provider provider{.attempt = ++attempts_};
    // The platform reports every slot except those on machines that it cannot reach.
    for (const auto& [slot, agent] : agents_) {
      if (agent.state == Agent::State::kEnded || time_ < agent.cut_until) continue;
      provider.slots[slot] = GetSlot(slot, agent);
    }
    providers_[attempts_] = provider;
    At(0, [this, attempt = attempts_] { Report(attempt); });
  }

  // The platform starts another one; the old one is dead, or only cut off from the platform.
  void PlayProviderDeath() {
    if (!faulty()) return;
    providers_[attempts_].alive = Chance(0.5);
    At(Uniform(0.1, 10), [this] { StartProvider(); });
    At(Uniform(15, 100), [this] { PlayProviderDeath(); });
  }

  static Slot GetSlot(const std::string& name, const Agent& agent) {
    Slot slot;
    slot.id = name;
    slot.task = agent.key.first;
    slot.incarnation = agent.key.second;
    return slot;
  }

  void Report(int64_t attempt) {
    Provider& provider = providers_[attempt];
    if (!provider.alive || time_ > faults_until_ + kPatience) return;
    // The newest attempt learns of every slot, an older one of those that it started.
    for (const auto& [name, agent] : agents_) {
      if (attempt != attempts_ && agent.attempt != attempt) continue;
      if (agent.state != Agent::State::kEnded) {
        if (agent.attempt != attempt && time_ < agent.cut_until) continue;
        provider.slots.try_emplace(name, GetSlot(name, agent));
      } else if (const auto found = provider.slots.find(name);
                 found != provider.slots.end() && time_ >= agent.cut_until) {
        found->second.state = Slot::State::kEnded;
      }
    }
    ProviderReport report{
        .provider = "simulated", .attempt = attempt, .sequence = ++provider.sequence};
    for (const auto& [name, slot] : provider.slots) report.slots.push_back(slot);
    Send([this, report, attempt] { HandleReport(report, attempt); });
    At(Uniform(0.3, 1.5), [this, attempt] { Report(attempt); });
  }

  void TakeAnswer(const ProviderAnswer& answer, int64_t attempt) {
    Provider& provider = providers_[attempt];
    if (!provider.alive || answer.sequence != provider.sequence ||
        provider.acted == answer.sequence) {
      return;
    }
    provider.acted = answer.sequence;
    if (answer.superseded) {
      provider.alive = false;
      return;
    }
    for (const std::string& slot : answer.forget) provider.slots.erase(slot);
    for (const std::string& slot : answer.kill) {
      At(Uniform(0, 2), [this, slot] { KillSlot(slot); });
      const auto asked = provider.slots.find(slot);
      if (asked != provider.slots.end() && asked->second.state == Slot::State::kAsked) {
        asked->second.state = Slot::State::kEnded;
      }
    }
    for (const WantedSlot& wanted : answer.wanted) Ask(provider, wanted);
    if (answer.final.empty()) return;
    const bool any =
        std::any_of(provider.slots.begin(), provider.slots.end(),
                    [](const auto& item) { return item.second.state != Slot::State::kEnded; });
    if (any) return;
    provider.alive = false;
    LookForRest();
  }

  void Ask(Provider& provider, const WantedSlot& wanted) {
    const std::string name = StrCat("slot-", ++slots_);
    Slot slot;
    slot.id = name;
    slot.task = wanted.task;
    slot.incarnation = wanted.incarnation;
    slot.state = Slot::State::kAsked;
    provider.slots[name] = slot;
    const Key key{wanted.task, wanted.incarnation};
    // An attempt that was replaced in the meantime may still start the slot.
    At(faulty() && Chance(0.2) ? Uniform(1, 40) : Uniform(0.1, 3),
       [this, name, key, attempt = provider.attempt] { StartSlot(name, key, attempt); });
  }

  void StartSlot(const std::string& name, const Key& key, int64_t attempt) {
    Provider& provider = providers_[attempt];
    Slot& slot = provider.slots[name];
    if (!provider.alive || slot.state == Slot::State::kEnded) return;
    if (faulty() && Chance(0.1)) {  // the platform refuses it
      slot.state = Slot::State::kEnded;
      return;
    }
    slot = {.id = name, .task = key.first, .incarnation = key.second};
    agents_[name] = {.slot = name, .key = key, .heard_at = time_, .attempt = attempt};
    agents_[name].hangs = faulty() && Chance(0.05);
    At(Uniform(0.05, 2), [this, name] { AgentTurn(name); });
  }

  // Slots that the platform reaches have ended with the provider; others end within a lease.
  void LookForRest() {
    for (const auto& [name, agent] : agents_) {
      const bool was_reached = time_ >= agent.cut_until;
      if (was_reached && agent.state != Agent::State::kEnded) {
        Fail(StrCat("nothing left: ", name, " is"));
      }
    }
    At(kGone, [this] {
      for (const auto& [name, agent] : agents_) {
        if (agent.state == Agent::State::kRunning) Fail(StrCat("nothing left: ", name, " runs"));
      }
      done_ = true;
    });
  }

  // --- slots and their agents ---

  void PlayCut() {  // a machine cannot be reached
    if (!faulty()) return;
    for (auto& [name, agent] : agents_) {
      if (Chance(0.3)) agent.cut_until = std::max(agent.cut_until, time_ + Uniform(1, 40));
    }
    At(Uniform(5, 60), [this] { PlayCut(); });
  }

  void KillSlot(const std::string& name) {
    const auto found = agents_.find(name);
    if (found == agents_.end()) return;
    if (time_ < found->second.cut_until) return;  // the order is repeated
    found->second.state = Agent::State::kEnded;
  }

  void AgentTurn(const std::string& name) {
    Agent& agent = agents_[name];
    if (agent.state == Agent::State::kEnded || agent.hangs || done_) return;
    if (time_ > agent.heard_at + kLease) {  // it ends its task, which takes a while
      if (time_ > agent.heard_at + kLease + kEndSeconds - 1.5) {
        agent.state = Agent::State::kEnded;
        return;
      }
    } else if (faulty() && Chance(0.01)) {
      agent.state = Agent::State::kEnded;  // killed by hand
      return;
    }
    const bool runs = agent.state == Agent::State::kRunning;
    if (time_ >= agent.cut_until) {
      Send([this, name, key = agent.key, runs, sent = time_] {
        TakeAgent(name, key, runs, /*ended=*/false, sent);
      });
    }
    At(Uniform(0.3, 1), [this, name] { AgentTurn(name); });
  }

  void TakeOrder(const std::string& name, bool start, bool stop, double sent) {
    Agent& agent = agents_[name];
    if (agent.state == Agent::State::kEnded || time_ < agent.cut_until) return;
    agent.heard_at = std::max(agent.heard_at, sent);
    if (stop) {
      agent.state = Agent::State::kEnded;
    } else if (start && agent.state == Agent::State::kWaiting && time_ <= agent.heard_at + kLease) {
      agent.state = Agent::State::kRunning;
      CheckStart(agent);
    }
  }

  void CheckStart(const Agent& agent) {
    if (!started_.insert(agent.key).second) Fail(StrCat("once: ", Name(agent.key), " ran before"));
    if (ended_.contains(agent.key)) Fail(StrCat("truth: ", Name(agent.key), " runs after its end"));
    for (const auto& [name, other] : agents_) {
      const bool is_other = other.key != agent.key && other.key.first == agent.key.first;
      if (is_other && other.state == Agent::State::kRunning) {
        Fail(StrCat("one live: ", Name(agent.key), " and ", Name(other.key)));
      }
    }
  }

  std::set<std::string> SeenNames() const {
    std::set<std::string> names;
    for (const auto& [attempt, provider] : providers_) {
      if (attempt != attempts_) continue;
      for (const auto& [name, slot] : provider.slots) {
        if (slot.state != Slot::State::kEnded) names.insert(Name({slot.task, slot.incarnation}));
      }
    }
    return names;
  }

  std::mt19937_64 random_;
  const Tampering tampering_;
  double time_ = 0, faults_until_ = 0;
  std::multimap<double, std::function<void()>> events_;
  std::string violation_;
  bool done_ = false;

  // What outlives a coordinator.
  std::map<job::TaskId, JournalTask> journal_;
  int64_t next_incarnation_ = 0;
  int64_t wanted_up_to_ = 0;
  std::optional<double> final_at_;

  std::unique_ptr<SlotTable> table_;  // null: no coordinator runs
  int life_ = 0;
  bool passed_ = false;
  std::map<Key, Known> known_;

  std::map<int64_t, Provider> providers_;
  int64_t attempts_ = 0, newest_heard_ = 0;
  int slots_ = 0;
  std::map<std::string, Agent> agents_;

  // What really happened.
  std::set<Key> started_, ended_;
};

}  // namespace muster::launch::slots
