// A training by parameter servers with the production ServerState, Request, Client and Replica on a
// virtual clock and network. A history is made from a seed: servers and replicas die, machines of
// servers vanish silently, connections are cut or half-open, tasks sleep, with and without a
// replacement, any task may get SIGTERM, after which the chief saves, and in some histories a
// replica dies for good. A batch adds one to its own rows of a table, one row on each server, and
// to its own keys of a table that grows, so that the weights show which batches are in them, and
// how often. These invariants are checked during a history and at its end:
//
//   state     the weights that a replica pulls have every earlier batch once, on every server:
//             synchronous, the batches of all replicas and nothing else; asynchronous, its own.
//             With backup replicas, if its gradient counts: the same batches on every server
//   together  a saved state has each replica's batches up to its position in the state, once, and
//             no other
//   live      no server takes a push of an incarnation that it knows to be replaced, or of another
//             generation
//   bound     no replica begins a batch further ahead of a live replica than the bound allows
//   once      the final state has every batch once; with backup replicas once or not at all
//   counts    the counts in a saved state say how many records are in it and how many were left out
//   named     a failed training names the replica that died for good; no other training fails
//   ends      every history ends
//
// A server that was told that training is over does not fail. For tests of this layer only.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/ps/client/replica.h"
#include "muster/ps/simulated_fiber.h"
#include "muster/ps/simulated_ledger.h"

namespace muster::ps {

class SimulatedTraining : SimulatedLedger {
 public:
  explicit SimulatedTraining(uint64_t seed, const Tamper& tamper = {})
      : SimulatedLedger(seed, tamper) {
    saved_ledger_.resize(all_rows_.size());
    saved_dense_.resize(2);
    save_every_ = 1 + time_.Below(4);
    for (uint64_t n = time_.Below(12); n > 0; --n) faults_.insert(time_.Below(500));
    if (time_.Below(10) == 0) lost_for_good_ = time_.Below(replicas());
  }
  ~SimulatedTraining() { EndAll(); }
  SimulatedTraining(const SimulatedTraining&) = delete;
  SimulatedTraining& operator=(const SimulatedTraining&) = delete;

  // Runs the history. Returns the first violation, "invariant: ...", or "" if there is none.
  std::string Run() {
    for (size_t k = 0; k < servers_.size(); ++k) StartServer(k);
    for (size_t r = 0; r < replicas(); ++r) Begin(r, time_.Uniform(0, 3));
    while (violation_.empty() && failed_.ok() && !Ended()) {
      if (time_.empty() || time_.now() > kLongest || events_ > kMostEvents) {
        return "ends: the history does not end";
      }
      time_.RunNext();
      if (faults_.contains(++events_)) MakeFault();
    }
    if (violation_.empty() && failed_.ok()) CheckEnd();
    if (!failed_.ok()) CheckFailure();
    return violation_;
  }

 private:
  static constexpr double kLongest = 2000;
  static constexpr uint64_t kMostEvents = 100'000;

  struct Process {
    size_t replica = 0;
    int64_t incarnation = 0;
    bool alive = true;
    bool done = false;
    std::atomic<bool> terminated = false;
    double asleep_until = 0;
    std::unique_ptr<Fiber> fiber = {};
    std::vector<std::weak_ptr<SimulatedLink>> links = {};
    std::vector<std::pair<LinkPtr, Bytes>> late = {};  // Tamper::leads_first
    std::vector<float> ledger = {};                    // the chief's memory
    std::vector<float> dense = {};
    tables::DynamicTableImage dynamic_table = {};
  };
  using ProcessPtr = std::shared_ptr<Process>;

  class SimulatedConnection : public ServerConnection {
   public:
    SimulatedConnection(SimulatedTraining& world, Process& process, LinkPtr link)
        : world_(world), process_(process), link_(std::move(link)) {}
    ~SimulatedConnection() override {
      link_->open_here = false;
      world_.CloseThere(link_);
    }
    absl::Status Send(uint16_t type, ConstBytes message) override {
      if (!process_.alive) return Killed();
      if (!link_->open_here) return absl::UnavailableError("it has closed the connection");
      if (type == kPush && world_.tamper_.leads_first) return SendLeadFirst(message);
      world_.SendThere(link_, type, message);
      return absl::OkStatus();
    }
    absl::StatusOr<net::transport::Message> Receive() override {
      while (process_.alive && link_->open_here && link_->inbox.empty()) process_.fiber->Wait();
      if (!process_.alive) return Killed();
      if (link_->inbox.empty()) return absl::UnavailableError("it has closed the connection");
      net::transport::Message message = std::move(link_->inbox.front());
      link_->inbox.pop_front();
      if (link_->server == 0 && !process_.late.empty()) {
        for (const auto& [link, bytes] : process_.late) world_.SendThere(link, kPush, bytes);
        process_.late.clear();
      }
      return message;
    }

   private:
    absl::Status SendLeadFirst(ConstBytes message) {
      if (link_->server == 0) {
        world_.SendThere(link_, kPush, message);
        return absl::OkStatus();
      }
      process_.late.emplace_back(link_, Bytes(message.begin(), message.end()));
      Bytes answer;
      Print(Pushed(), &answer);
      link_->inbox.push_back(GetMessage(kAnswer, answer));
      return absl::OkStatus();
    }

    SimulatedTraining& world_;
    Process& process_;
    const LinkPtr link_;
  };

  static absl::Status Killed() { return absl::InternalError("killed"); }
  // Processes.
  void Begin(size_t replica, double delay) {
    time_.After(delay, [this, replica] {
      auto process = std::make_shared<Process>();
      process->replica = replica;
      process->incarnation = ++incarnations_[replica];
      current_[replica] = process;
      processes_.push_back(process);
      process->fiber = std::make_unique<Fiber>([this, raw = process.get()] { Live(*raw); });
      process->fiber->Resume();
      Beat(process);
      if (replica == lost_for_good_) {
        time_.After(time_.Uniform(0, 5), [this, process] { Kill(*process); });
      }
    });
  }
  void Restart(size_t replica) {
    if (replica != lost_for_good_) Begin(replica, time_.Uniform(0.1, 15));
  }
  void Beat(const ProcessPtr& process) {
    if (!process->alive || process->done) return;
    if (time_.now() >= process->asleep_until) SendHeartbeat(process->replica, process->incarnation);
    time_.After(1, [this, process] { Beat(process); });
  }
  void Wake(Process& process) {
    if (process.fiber->done()) return;
    if (process.alive && time_.now() < process.asleep_until) {
      return time_.At(process.asleep_until, [this, &process] { Wake(process); });
    }
    process.fiber->Resume();
  }
  void SleepFor(Process& process, double seconds) {
    const double until = time_.now() + seconds;
    time_.At(until, [this, &process] { Wake(process); });
    while (process.alive && time_.now() < until) process.fiber->Wait();
  }
  void Kill(Process& process) {
    process.alive = false;
    Wake(process);
  }
  void EndAll() {
    for (const ProcessPtr& process : processes_) Kill(*process);
  }
  bool Ended() const {
    return ended_ && std::all_of(processes_.begin(), processes_.end(),
                                 [](const auto& each) { return each->done || !each->alive; });
  }

  void MakeFault() {
    if (ended_) return;
    if (time_.Below(4) == 0) return HarmServer(time_.Below(servers()));
    const size_t replica = time_.Below(replicas());
    const auto found = current_.find(replica);
    if (found == current_.end() || found->second->done) return;
    Process& process = *found->second;
    if (!process.alive) return;
    switch (time_.Below(6)) {
      case 0:
      case 1:
        Kill(process);
        Restart(replica);
        break;
      case 2:
        process.asleep_until = time_.now() + time_.Uniform(0.1, 25);
        break;
      case 3:  // the process counts as lost, and wakes up beside its replacement
        process.asleep_until = time_.now() + time_.Uniform(1, 40);
        Restart(replica);
        break;
      case 4:
        Terminate(process);
        break;
      default:
        for (const auto& each : process.links) {
          const LinkPtr link = each.lock();
          if (link != nullptr && link->open_here && time_.Below(2) == 0) Cut(link);
        }
    }
  }
  void Terminate(Process& process) {
    process.terminated = true;
    for (const auto& each : process.links) {
      const LinkPtr link = each.lock();
      if (link != nullptr && link->open_here) SayAlive(link);
    }
    Wake(process);
  }

  absl::StatusOr<std::unique_ptr<ServerConnection>> Dial(Process& process, size_t k) {
    while (true) {
      SleepFor(process, time_.Delay());
      if (!process.alive) return Killed();
      const LinkPtr link =
          Connect(k, process.replica, process.incarnation, [this, &process] { Wake(process); });
      if (link == nullptr) continue;
      process.links.emplace_back(link);
      return std::make_unique<SimulatedConnection>(*this, process, link);
    }
  }

  // Does what train/loop/train_loop.cc and train/parameter_server/ps_step.cc do.
  void Live(Process& process) {
    const absl::Status status = Train(process);
    process.done = true;
    if (!process.alive || current_.at(process.replica).get() != &process) return;
    if (!status.ok() && !ended_) Restart(process.replica);
  }
  Client MakeClient(Process& process) {
    return Client(
        {.self = {.incarnation = static_cast<uint64_t>(process.incarnation)},
         .replica = static_cast<int>(process.replica),
         .training = spec_.training,
         .clips_by_norm = spec_.clips_by_norm(),
         .stop = &process.terminated,
         .leaving = &process.terminated},
        spec_.servers, [this, &process](size_t k) { return Dial(process, k); }, variables_);
  }
  Replica MakeReplica(Client& client, Process& process) {
    ReplicaSpec spec;
    spec.memory = [&process](int variable, int) {
      return variable == 0 ? process.ledger.data() : process.dense.data();
    };
    spec.give = [this, &process](bool) -> absl::StatusOr<Place> {
      process.ledger = saved_ledger_;
      process.dense = saved_dense_;
      process.dynamic_table = saved_dynamic_;
      return saved_;
    };
    spec.dynamic_table = [&process](int) { return &process.dynamic_table; };
    process.ledger.resize(saved_ledger_.size());
    process.dense.resize(2);
    return Replica(client, std::move(spec));
  }
  absl::Status Train(Process& process) {
    Client client = MakeClient(process);
    Replica replica = MakeReplica(client, process);
    const bool chief = process.replica == 0;
    const absl::Status opened = replica.Recover(absl::OkStatus()).status();
    const bool over = absl::IsCancelled(opened) && !process.terminated;
    if (over) return chief ? Leave(process) : absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(opened);
    MUSTER_RETURN_IF_ERROR(DoBatches(process, replica));
    if (chief) MUSTER_RETURN_IF_ERROR(Save(process, replica, /*last=*/true));
    if (process.terminated) return absl::UnavailableError("told to end");
    if (!chief) return absl::OkStatus();
    return Leave(process);
  }
  absl::Status DoBatches(Process& process, Replica& replica) {
    uint64_t next = GetBatch(replica.position());
    while (true) {
      if (process.terminated) return absl::OkStatus();
      const bool is_time = next % save_every_ == save_every_ - 1 || replica.wants_save();
      if (process.replica == 0 && is_time) {
        MUSTER_RETURN_IF_ERROR(Save(process, replica, /*last=*/false));
      }
      bool last = false;
      MUSTER_ASSIGN_OR_RETURN(const Replica::Turn turn,
                              replica.Try([&] { return DoBatch(process, replica, next, &last); }));
      if (turn == Replica::Turn::kOver) return absl::OkStatus();
      if (turn == Replica::Turn::kDone && !last) next += next < batches_[process.replica] ? 1 : 0;
      if (turn == Replica::Turn::kMoved) next = GetBatch(replica.position());
      if (turn == Replica::Turn::kMoved || !last) continue;
      if (tamper_.waits_for_nobody) return absl::OkStatus();
      MUSTER_ASSIGN_OR_RETURN(const Replica::Ending ending, replica.WaitForOthers());
      if (ending == Replica::Ending::kOver) return absl::OkStatus();
      if (ending == Replica::Ending::kMoved) next = GetBatch(replica.position());
    }
  }
  absl::Status DoBatch(Process& process, Replica& replica, uint64_t next, bool* last) {
    const bool has = next < batches_[process.replica];
    *last = !has;
    const bool in_lock_step = spec_.training.synchronous && !spec_.training.has_backups();
    if (!in_lock_step && !has) return replica.Finish();
    std::vector<float> ledger(all_rows_.size()), dynamic_table(all_keys_.size()), dense(2);
    const std::vector<Block> blocks = {{.variable = 0, .rows = all_rows_},
                                       {.variable = 2, .keys = all_keys_}};
    const std::vector<float*> into_dense = {nullptr, dense.data(), nullptr},
                              into_rows = {ledger.data(), dynamic_table.data()};
    MUSTER_ASSIGN_OR_RETURN(
        const Pulled pulled,
        replica.Pull({.rows = has ? 1u : 0u},
                     {.tables = blocks, .dense = into_dense, .blocks = into_rows}));
    *last = in_lock_step && pulled.rows == 0;
    if (*last) return absl::OkStatus();
    if (ledger != dynamic_table) Violated("state: the pulled rows and keys are of two moments");
    if (has && !spec_.training.has_backups()) CheckPulled(process.replica, ledger, next);
    SleepFor(process, time_.Uniform(0, 0.2));
    if (!process.alive) return Killed();
    MUSTER_ASSIGN_OR_RETURN(const Pushed pushed, PushBatch(process, replica, next, has));
    if (spec_.training.has_backups() && pushed.finite != 0 && pushed.stale == 0) {
      CheckPulled(process.replica, ledger, next);
      CheckStep(ledger, pulled.step);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Pushed> PushBatch(const Process& process, Replica& replica, uint64_t next,
                                   bool has) {
    const bool finite = !has || !not_finite_.contains({process.replica, next});
    std::vector<int32_t> rows;
    std::vector<int64_t> keys;
    std::vector<float> table;
    const std::vector<float> dense = {-1.0f, -1.0f};
    for (size_t k = 0; has && finite && k < servers(); ++k) {
      table.push_back(-1);
      if (variables_[0].gradient_layout().squares) table.push_back(1);
      rows.push_back(static_cast<int32_t>(GetRow(process.replica, next, k)));
      keys.push_back(all_keys_[GetRow(process.replica, next, k)]);
    }
    const std::vector<Block> blocks = {{.variable = 0, .rows = rows},
                                       {.variable = 2, .keys = keys}};
    const std::vector<std::span<const float>> values = {table, table};
    std::vector<std::span<const float>> all_dense(3);
    if (has && finite) all_dense[1] = dense;
    return replica.Push({.rows = has ? 1u : 0u,
                         .finite = finite ? 1u : 0u,
                         .loss = 1,
                         .position = StrCat(has ? next + 1 : next),
                         .dropped = has ? 1 : 0},
                        {.dense = all_dense, .tables = blocks, .values = values});
  }
  absl::Status Save(Process& process, Replica& replica, bool last) {
    absl::StatusOr<Place> saved = replica.Save();
    // One save may be due and another one requested after the same step.
    if (absl::IsAborted(saved.status()) && !last) saved = replica.Save();
    // Does what train/loop/hooks/checkpoint_saver.cc does.
    if (absl::IsAborted(saved.status())) {
      return last ? absl::UnavailableError("could not save") : absl::OkStatus();
    }
    MUSTER_ASSIGN_OR_RETURN(Place place, std::move(saved));
    if (current_.at(0).get() != &process) return Killed();  // a replacement owns its model folder
    CheckState(process.ledger, process.dense, place);
    CheckState(MakeLedger(process.dynamic_table), process.dense, place);
    saved_ledger_ = process.ledger;
    saved_dense_ = process.dense;
    saved_dynamic_ = process.dynamic_table;
    saved_ = std::move(place);
    return absl::OkStatus();
  }
  absl::Status Leave(Process& process) {
    Client client = MakeClient(process);
    MUSTER_RETURN_IF_ERROR(client.Connect().status());
    MUSTER_RETURN_IF_ERROR(client.End());
    ended_ = true;
    return absl::OkStatus();
  }

  uint64_t save_every_ = 1;
  std::set<uint64_t> faults_;  // the numbers of the events at which faults are made
  uint64_t events_ = 0;
  std::map<size_t, int64_t> incarnations_;
  std::map<size_t, ProcessPtr> current_;
  bool ended_ = false;
  std::vector<ProcessPtr> processes_;  // their fibers use the members above: destroyed first
};

}  // namespace muster::ps
