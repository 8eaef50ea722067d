// The platform of simulated_slots.h: its machines, the slots on them with their agents, and the
// providers that start slots and report them. Machines are cut off for a while, providers die and
// are replaced, agents hang or are killed by hand; messages are lost, late or repeated.
//
// For tests of this layer only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "muster/base/simulation.h"
#include "muster/base/strings.h"
#include "muster/launch/slots/slot_table.h"

namespace muster::launch::slots {

class SimulatedPlatform : protected SimulatedHistory {
 protected:
  using Key = std::pair<job::TaskId, int64_t>;
  static constexpr double kLease = 10, kGone = 16, kEndSeconds = 4, kPatience = 600;

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
  explicit SimulatedPlatform(uint64_t seed) : SimulatedHistory(seed) {}
  virtual ~SimulatedPlatform() = default;
  SimulatedPlatform(const SimulatedPlatform&) = delete;
  SimulatedPlatform& operator=(const SimulatedPlatform&) = delete;

  // The coordinator's side. `sent`: when the agent's report was sent.
  virtual void HandleReport(ProviderReport report, int64_t attempt) = 0;
  virtual void TakeAgent(const std::string& slot, Key key, bool runs, bool ended, double sent) = 0;

  double now() const { return time_.now(); }
  bool Chance(double p) { return time_.Chance(p); }
  double Uniform(double low, double high) { return time_.Uniform(low, high); }
  int Int(int low, int high) { return time_.Int(low, high); }
  bool faulty() const { return now() < faults_until_; }
  void After(double seconds, std::function<void()> act) { time_.After(seconds, std::move(act)); }
  static std::string Name(const Key& key) {
    return StrCat(job::TaskName(key.first), ".", key.second);
  }

  // A message: mostly soon, sometimes late, twice or never.
  void Send(const std::function<void()>& arrive) {
    if (!faulty()) return After(Uniform(0.001, 0.05), arrive);
    if (Chance(0.1)) return;
    After(Chance(0.15) ? Uniform(0.5, 30) : Uniform(0.001, 0.3), arrive);
    if (Chance(0.1)) After(Uniform(0.1, 40), arrive);
  }

  // --- providers ---

  void StartProvider() {
    Provider provider{.attempt = ++attempts_};
    // The platform says what there is, but for machines that it does not reach.
    for (const auto& [slot, agent] : agents_) {
      if (agent.state == Agent::State::kEnded || now() < agent.cut_until) continue;
      provider.slots[slot] = GetSlot(slot, agent);
    }
    providers_[attempts_] = provider;
    After(0, [this, attempt = attempts_] { Report(attempt); });
  }

  // The platform starts another one; the old one is dead, or only cut off from the platform.
  void PlayProviderDeath() {
    if (!faulty()) return;
    providers_[attempts_].alive = Chance(0.5);
    After(Uniform(0.1, 10), [this] { StartProvider(); });
    After(Uniform(15, 100), [this] { PlayProviderDeath(); });
  }

  static Slot GetSlot(const std::string& name, const Agent& agent) {
    Slot slot;
    slot.id = name;
    slot.task = agent.key.first;
    slot.incarnation = agent.key.second;
    slot.process = StrCat("process of ", name);
    return slot;
  }

  void Report(int64_t attempt) {
    Provider& provider = providers_[attempt];
    if (!provider.alive || now() > faults_until_ + kPatience) return;
    // The newest one hears of everything, old ones of what they started.
    for (const auto& [name, agent] : agents_) {
      if (attempt != attempts_ && agent.attempt != attempt) continue;
      if (agent.state != Agent::State::kEnded) {
        if (agent.attempt != attempt && now() < agent.cut_until) continue;
        provider.slots.try_emplace(name, GetSlot(name, agent));
      } else if (const auto found = provider.slots.find(name);
                 found != provider.slots.end() && now() >= agent.cut_until) {
        found->second.state = Slot::State::kEnded;
      }
    }
    ProviderReport report{
        .provider = "simulated", .attempt = attempt, .sequence = ++provider.sequence};
    for (const auto& [name, slot] : provider.slots) report.slots.push_back(slot);
    for (const auto& [name, agent] : agents_) {  // whose slots it does not know
      if (attempt != attempts_ || agent.attempt == attempt || provider.slots.contains(name))
        continue;
      if (agent.state != Agent::State::kEnded || now() < agent.cut_until || Chance(0.3)) continue;
      report.ended.push_back({.process = StrCat("process of ", name)});
    }
    Send([this, report, attempt] { HandleReport(report, attempt); });
    After(Uniform(0.3, 1.5), [this, attempt] { Report(attempt); });
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
      After(Uniform(0, 2), [this, slot] { KillSlot(slot); });
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
    // One that was replaced meanwhile may still do it.
    After(faulty() && Chance(0.2) ? Uniform(1, 40) : Uniform(0.1, 3),
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
    slot = {.id = name,
            .task = key.first,
            .incarnation = key.second,
            .process = StrCat("process of ", name)};
    agents_[name] = {.slot = name, .key = key, .heard_at = now(), .attempt = attempt};
    agents_[name].hangs = faulty() && Chance(0.05);
    After(Uniform(0.05, 2), [this, name] { AgentTurn(name); });
  }

  // What the platform reaches is gone with the provider, all else within a lease.
  void LookForRest() {
    for (const auto& [name, agent] : agents_) {
      const bool was_reached = now() >= agent.cut_until;
      if (was_reached && agent.state != Agent::State::kEnded) {
        Violated(StrCat("nothing left: ", name, " is"));
      }
    }
    After(kGone, [this] {
      for (const auto& [name, agent] : agents_) {
        if (agent.state == Agent::State::kRunning)
          Violated(StrCat("nothing left: ", name, " runs"));
      }
      done_ = true;
    });
  }

  // --- slots and their agents ---

  void PlayCut() {  // a machine cannot be reached
    if (!faulty()) return;
    for (auto& [name, agent] : agents_) {
      if (Chance(0.3)) agent.cut_until = std::max(agent.cut_until, now() + Uniform(1, 40));
    }
    After(Uniform(5, 60), [this] { PlayCut(); });
  }

  void KillSlot(const std::string& name) {
    const auto found = agents_.find(name);
    if (found == agents_.end()) return;
    if (now() < found->second.cut_until) return;  // it is said again
    found->second.state = Agent::State::kEnded;
  }

  void AgentTurn(const std::string& name) {
    Agent& agent = agents_[name];
    if (agent.state == Agent::State::kEnded || agent.hangs || done_) return;
    if (now() > agent.heard_at + kLease) {  // it ends its task, which takes a while
      if (now() > agent.heard_at + kLease + kEndSeconds - 1.5) {
        agent.state = Agent::State::kEnded;
        return;
      }
    } else if (faulty() && Chance(0.01)) {
      agent.state = Agent::State::kEnded;  // killed by hand
      return;
    }
    const bool runs = agent.state == Agent::State::kRunning;
    if (now() >= agent.cut_until) {
      Send([this, name, key = agent.key, runs, sent = now()] {
        TakeAgent(name, key, runs, /*ended=*/false, sent);
      });
    }
    After(Uniform(0.3, 1), [this, name] { AgentTurn(name); });
  }

  void TakeOrder(const std::string& name, bool start, bool stop, double sent) {
    Agent& agent = agents_[name];
    if (agent.state == Agent::State::kEnded || now() < agent.cut_until) return;
    agent.heard_at = std::max(agent.heard_at, sent);
    if (stop) {
      agent.state = Agent::State::kEnded;
    } else if (start && agent.state == Agent::State::kWaiting && now() <= agent.heard_at + kLease) {
      agent.state = Agent::State::kRunning;
      CheckStart(agent);
    }
  }

  void CheckStart(const Agent& agent) {
    if (!started_.insert(agent.key).second)
      Violated(StrCat("once: ", Name(agent.key), " ran before"));
    if (ended_.contains(agent.key))
      Violated(StrCat("truth: ", Name(agent.key), " runs after its end"));
    for (const auto& [name, other] : agents_) {
      const bool is_other = other.key != agent.key && other.key.first == agent.key.first;
      if (is_other && other.state == Agent::State::kRunning) {
        Violated(StrCat("one live: ", Name(agent.key), " and ", Name(other.key)));
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

  double faults_until_ = 0;
  bool done_ = false;
  std::map<int64_t, Provider> providers_;
  int64_t attempts_ = 0;
  int slots_ = 0;
  std::map<std::string, Agent> agents_;
  std::set<Key> started_, ended_;  // what really happened
};

}  // namespace muster::launch::slots
