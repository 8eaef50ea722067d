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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/strings.h"
#include "muster/launch/slots/simulated_platform.h"
#include "muster/launch/slots/slot_table.h"

namespace muster::launch::slots {

// Faults planted into the decisions, to see that the invariants catch them.
struct Tampering {
  std::function<void(ProviderReport*, int64_t newest_attempt)> report = {};  // before it is taken
  std::function<void(SlotMemory*)> memory = {};  // that a coordinator begins with
  std::function<Admission(Admission, bool runs)> admission = {};
  std::function<void(std::vector<job::TaskObservation>*, const std::set<std::string>& seen)>
      observed = {};
  std::function<void(ProviderAnswer*, const ProviderReport&)> answer = {};
};

class SlotSimulation : SimulatedPlatform {
 public:
  SlotSimulation(uint64_t seed, Tampering tampering)
      : SimulatedPlatform(seed), tampering_(std::move(tampering)) {
    const int tasks = Int(1, 3);
    for (int i = 0; i < tasks; ++i) journal_[{job::TaskType::kWorker, i}];
    faults_until_ = Uniform(20, 250);
    StartCoordinator();
    StartProvider();
    After(Uniform(5, 60), [this] { PlayCoordinatorDeath(); });
    After(Uniform(5, 60), [this] { PlayProviderDeath(); });
    After(Uniform(5, 60), [this] { PlayCut(); });
    After(Uniform(2, 30), [this] { PlayStop(); });
  }

  // The first invariant that does not hold; "" for none.
  std::string Run() {
    while (violation_.empty() && !time_.empty() && !done_) {
      time_.Advance(time_.next());
      if (now() > faults_until_ + kPatience) {
        Violated(StrCat(final_at_ ? "nothing left" : "progress", ": not after ", kPatience,
                        " s without faults"));
      }
      time_.RunNext();
    }
    if (!done_) Violated("progress: nothing happens any more");
    return violation_;
  }

 private:
  struct JournalTask {
    int64_t incarnation = 0;
    bool live = false, stopping = false;
  };
  struct Known {  // of an agent, by the coordinator
    std::optional<double> answered_at;
    std::optional<double> heard_at;
    double asked_at = 0;
    bool killed = false;
  };

  // --- the coordinator ---

  void StartCoordinator() {
    SlotMemory memory{.started_up_to = next_incarnation_, .may_run = may_run_};
    if (tampering_.memory) tampering_.memory(&memory);
    table_ = std::make_unique<SlotTable>(memory, now(), kGone);
    ++life_;
    known_.clear();
    passed_ = false;
    for (const auto& [task, status] : journal_) {
      if (!status.live) continue;
      Known& known = known_[{task, status.incarnation}];
      known.answered_at = known.asked_at = now();
      known.heard_at = now();
    }
    After(0, [this, life = life_] { Pass(life); });
  }

  void PlayCoordinatorDeath() {
    if (!faulty()) return;
    table_.reset();
    ++life_;
    After(Uniform(0.1, 20), [this] { StartCoordinator(); });
    After(Uniform(25, 120), [this] { PlayCoordinatorDeath(); });
  }

  void PlayStop() {  // the task was seen to fail or hang, or a gang starts again
    if (!faulty()) return;
    for (auto& [task, status] : journal_) {
      if (status.live && Chance(0.5)) status.stopping = true;
    }
    After(Uniform(2, 60), [this] { PlayStop(); });
  }

  void Pass(int life) {
    if (life != life_ || table_ == nullptr) return;
    After(Uniform(0.2, 1), [this, life] { Pass(life); });
    std::vector<job::TaskObservation> observed = table_->Observe(now());
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
      if (!answered || now() >= *answered + kGone) Ended(key, "by its lease");
    }
    CheckLeases();
    for (auto& [task, status] : journal_) Act(task, status);
    passed_ = true;
    LookForEnd();
  }

  void CheckLeases() {
    for (auto& [key, known] : known_) {
      const bool silent = known.heard_at && now() > *known.heard_at + kLease + 1;
      const bool never_came = !known.heard_at && now() > known.asked_at + 60;
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
    if (known.asked_at == 0) known.asked_at = now();
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
        Violated(StrCat("truth: ", Name(key), " has ended, ", how, ", and runs in ", slot));
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
    final_at_ = now();
    table_->SetFinal("succeeded");
    for (auto& [task, status] : journal_) status.stopping = true;
  }

  void HandleReport(ProviderReport report, int64_t attempt) override {
    if (table_ == nullptr || !passed_) return;
    if (final_at_) table_->SetFinal("succeeded");
    if (tampering_.report) tampering_.report(&report, newest_heard_);
    ProviderAnswer answer = table_->Take(report, now());
    if (tampering_.answer) tampering_.answer(&answer, report);
    newest_heard_ = std::max(newest_heard_, attempt);
    may_run_ = table_->may_run();
    table_->NoteKept();
    Send([this, answer, attempt] { TakeAnswer(answer, attempt); });
  }

  // From an agent; `sent`: when.
  void TakeAgent(const std::string& slot, Key key, bool runs, bool ended, double sent) override {
    if (table_ == nullptr || !passed_) return;
    Admission admission = table_->Admits(key.first, key.second, slot, runs);
    if (tampering_.admission) admission = tampering_.admission(admission, runs);
    if (admission == Admission::kNotYet) return;
    Known& known = known_[key];
    const JournalTask& status = journal_[key.first];
    const bool is_current = status.incarnation == key.second && status.live;
    const bool stop = admission == Admission::kNo || !is_current || known.killed;
    if (admission == Admission::kYes) {
      known.heard_at = now();
      if (!known.killed) known.answered_at = now();
    }
    if (ended && is_current && admission == Admission::kYes) return Ended(key, "by its agent");
    const bool start = !stop && !runs;
    Send([this, slot, start, stop, sent] { TakeOrder(slot, start, stop, sent); });
  }

  const Tampering tampering_;

  // What outlives a coordinator.
  std::map<job::TaskId, JournalTask> journal_;
  int64_t next_incarnation_ = 0;
  MayRun may_run_;
  std::optional<double> final_at_;

  std::unique_ptr<SlotTable> table_;  // null: no coordinator runs
  int life_ = 0;
  bool passed_ = false;
  std::map<Key, Known> known_;
  int64_t newest_heard_ = 0;
};

}  // namespace muster::launch::slots
