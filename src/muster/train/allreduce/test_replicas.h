// Replicas as threads of one process, for tests: they use the real roster and real channels over
// socket pairs, which outlive a generation where both ends do, and can be killed at any moment.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/collective/group.h"
#include "muster/membership/roster.h"
#include "muster/membership/view_change.h"
#include "muster/net/transport/counting_stream.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/train/allreduce/replicas.h"

namespace muster::train {

// The roster and the replicas of one training. Each incarnation of a replica has its own connection
// to the roster, numbered from 1. Thread-safe.
class TestCluster {
 public:
  using Interrupt = net::transport::Interrupt;

  // `fewest` > 0: this many replicas continue without the others.
  // When a replica joins, the others may not be stuck in a step for longer than `patience`.
  explicit TestCluster(int size, int fewest = 0,
                       std::chrono::milliseconds patience = std::chrono::milliseconds(100))
      : size_(size), fewest_(fewest), patience_(patience) {
    roster_.emplace(Spec(size));
    ticker_ = std::jthread([this](const std::stop_token& stop) { EndPlanned(stop); });
  }

  // The replicas as the rank's next incarnation sees them.
  std::unique_ptr<Replicas> New(int rank);

  // Acts like kill -9 on the replica: it sends nothing more. The roster dies with the chief, which
  // hosts it.
  void Kill(int rank) {
    const std::lock_guard lock(mutex_);
    Member& member = members_[rank];
    if (member.dead || member.over) return;
    ++kills_;
    member.dead = true;
    if (member.interrupt != nullptr) {
      member.interrupt->Set(absl::InternalError("killed by the test"));
    }
    if (rank == 0) {
      StartRosterAgain();
    } else {
      Deliver(roster_->OnClosed(member.connection, "closed its connection", Now()));
    }
    changed_.notify_all();
  }

  // The traffic of each rank to the others in the first generation. Read it only while no replica
  // runs.
  const std::vector<net::transport::Traffic>& traffic() const { return traffic_.begin()->second; }

  int kills() {
    const std::lock_guard lock(mutex_);
    return kills_;
  }

  // In how many generations a replica without a state joined one that trained, and how many
  // replicas with an older state than others those had. Read them only while no replica runs.
  int joins() const { return joins_; }
  int behind() const { return behind_; }

 private:
  class Handle;
  struct Member {
    uint64_t connection = 0;
    int64_t incarnation = 0;
    int64_t last_generation = 0;
    int breaks = 0;  // broken generations it was told of; one during Join means: send Join again
    bool dead = false;
    bool stuck = false;  // with a planned interrupt: nothing has moved since the last look
    std::optional<membership::View> view = {};
    std::optional<membership::View> known = {};  // the last that the roster has sent
    bool over = false;
    std::string refused = {};
    std::shared_ptr<Interrupt> interrupt = {};  // of the member's present generation
  };

  membership::RosterSpec Spec(int size) const {
    membership::RosterSpec spec = {
        .min_replicas = fewest_, .settle_seconds = 0, .first_generation = rosters_ * 1000};
    for (int rank = 0; rank < size; ++rank) spec.tasks.push_back(GetTask(rank));
    return spec;
  }
  static job::TaskId GetTask(int rank) {
    if (rank == 0) return {job::TaskType::kChief, 0};
    return {job::TaskType::kWorker, rank - 1};
  }
  void StartRosterAgain() {
    ++rosters_;
    roster_.emplace(Spec(size_));
    for (auto& [rank, member] : members_) {
      member.connection = ++connections_;
      member.view.reset();
      if (member.interrupt != nullptr) {
        member.interrupt->Set(absl::AbortedError("the connection to chief-0 closed"));
      }
    }
  }

  void EndPlanned(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      changed_.wait_for(lock, stop, patience_, [] { return false; });
      for (auto& [rank, member] : members_) {
        if (member.interrupt == nullptr || !member.interrupt->is_planned()) continue;
        const bool is_stuck = !member.interrupt->ConsumeMoves();
        if (is_stuck && std::exchange(member.stuck, true)) {
          member.interrupt->Set(member.interrupt->planned());
        }
        member.stuck = is_stuck;
      }
    }
  }

  void CountJoin(const membership::View& view) {
    const membership::StateId newest = view.members[static_cast<size_t>(view.source())].state();
    bool joins = false;
    int behind = 0;
    for (const membership::Member& member : view.members) {
      joins = joins || member.step < 0;
      behind += member.step >= 0 && member.state() != newest ? 1 : 0;
    }
    if (!joins || newest.step <= 0) return;
    ++joins_;
    behind_ += behind;
  }

  double Now() { return now_ += 0.001; }  // so slow that no member's lease ends

  void Deliver(const std::vector<membership::Roster::Outgoing>& outgoing) {
    for (const auto& each : outgoing) {
      for (auto& [rank, member] : members_) {
        if (member.connection != each.to) continue;
        if (each.message.view) member.view = member.known = each.message.view;
        if (each.message.change) {
          auto changed = membership::ApplyChange(member.known.value(), *each.message.change);
          EXPECT_TRUE(changed.ok()) << changed.status();
          member.view = member.known = *std::move(changed);
        }
        if (each.message.leave) member.over = true;
        if (!each.message.refused.empty()) member.refused = each.message.refused;
        if (each.message.broken) {
          member.view.reset();
          ++member.breaks;
          if (member.interrupt && each.message.broken->planned) {
            member.interrupt->Plan(ToStatus(*each.message.broken));
          } else if (member.interrupt) {
            member.interrupt->Set(ToStatus(*each.message.broken));
          }
        }
      }
    }
  }

  // This rank's channels of a generation; the first caller makes those of all ranks.
  std::vector<std::unique_ptr<collective::Channel>> GetChannels(int64_t generation, int rank,
                                                                int size) {
    // Who has an end of a channel that the other one never took finds it closed.
    channels_.erase(channels_.begin(), channels_.lower_bound(generation));
    auto& rows = channels_[generation];
    const auto n = static_cast<size_t>(size);
    if (rows.empty()) {
      traffic_[generation].resize(n);
      rows.resize(n);
      for (auto& row : rows) row.resize(n);
      for (size_t a = 0; a < n; ++a) {
        for (size_t b = a + 1; b < n; ++b) {
          int fds[2];
          EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
          rows[a][b] = Wrap(fds[0], a, generation);
          rows[b][a] = Wrap(fds[1], b, generation);
        }
      }
    }
    return std::move(rows[static_cast<size_t>(rank)]);
  }
  std::unique_ptr<collective::Channel> Wrap(int fd, size_t owner, int64_t generation) {
    auto stream = net::transport::SocketStream::Create(process::Descriptor(fd), "test");
    return std::make_unique<collective::Channel>(
        std::make_unique<net::transport::CountingStream>(std::move(stream).value(),
                                                         &traffic_[generation][owner]),
        net::transport::ChannelOptions{.generation = static_cast<uint64_t>(generation)});
  }

  const int size_, fewest_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<membership::Roster> roster_;
  int64_t rosters_ = 1;
  std::map<int, Member> members_;
  std::map<int64_t, std::vector<net::transport::Traffic>> traffic_;  // by generation, then by rank
  std::map<int64_t, std::vector<std::vector<std::unique_ptr<collective::Channel>>>> channels_;
  uint64_t connections_ = 0;
  int kills_ = 0;
  int joins_ = 0, behind_ = 0;
  double now_ = 0;
  std::jthread ticker_;
};

class TestCluster::Handle : public Replicas {
 public:
  Handle(TestCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

  bool is_chief() const override { return rank_ == 0; }

  absl::StatusOr<ReplicaGeneration> Join(const StateId& state, const absl::Status&) override {
    std::unique_lock lock(cluster_.mutex_);
    Member& member = cluster_.members_[rank_];
    if (member.dead) return absl::InternalError("killed by the test");
    member.view.reset();
    while (!member.view && !member.dead && !member.over && member.refused.empty()) {
      const int64_t roster = cluster_.rosters_;
      const int breaks = member.breaks;
      SendJoin(member, state);
      cluster_.changed_.wait(lock, [&] {
        return member.view || member.dead || member.over || !member.refused.empty() ||
               cluster_.rosters_ != roster || member.breaks != breaks;
      });
    }
    if (member.dead) return absl::InternalError("killed by the test");
    if (!member.refused.empty()) return absl::UnavailableError(member.refused);
    if (member.over) return absl::CancelledError("the chief has ended training");
    const membership::View view = *member.view;
    member.last_generation = view.generation;
    member.interrupt = Interrupt::Create().value();
    member.stuck = false;
    if (rank_ == 0) cluster_.CountJoin(view);
    interrupt_ = member.interrupt;
    ReplicaGeneration generation = {.generation = view.generation};
    collective::GroupOptions options;
    for (const auto& each : view.members) {
      generation.states.push_back(each.state());
      options.names.push_back(job::TaskName(each.id.task));
    }
    const int rank = view.GetRank(GetTask(rank_));
    options.retire = [kept = kept_, view](int other, std::unique_ptr<collective::Channel> channel) {
      (*kept)[view.members[static_cast<size_t>(other)].id] = std::move(channel);
    };
    auto channels = cluster_.GetChannels(view.generation, rank, view.replicas);
    lock.unlock();
    Renew(view, &channels);
    generation.group = std::make_unique<collective::Group>(rank, std::move(channels), *interrupt_,
                                                           std::move(options));
    return generation;
  }

  absl::Status Leave() override {
    std::unique_lock lock(cluster_.mutex_);
    Member& member = cluster_.members_[rank_];
    if (is_chief()) {
      cluster_.Deliver(
          cluster_.roster_->OnMessage(member.connection, {.leave = true}, cluster_.Now()));
      cluster_.changed_.notify_all();
    }
    cluster_.changed_.wait(lock, [&] { return member.over || member.dead || !member.view; });
    if (member.dead) return absl::InternalError("killed by the test");
    return member.over ? absl::OkStatus() : absl::AbortedError("the generation is over");
  }

 private:
  // Uses the channels of the last generation whose other ends do so too. All replicas go through
  // their pairs in one order, so that none waits for another in a circle.
  void Renew(const membership::View& view,
             std::vector<std::unique_ptr<collective::Channel>>* channels) {
    for (size_t other = 0; other < channels->size(); ++other) {
      const auto found = kept_->find(view.members[other].id);
      if (found == kept_->end() || (*channels)[other] == nullptr) continue;
      const absl::Status renewed =
          found->second->Renew(static_cast<uint64_t>(view.generation),
                               process::Deadline::After(kRenewSeconds), *interrupt_);
      if (renewed.ok()) (*channels)[other] = std::move(found->second);
    }
    kept_->clear();
  }
  void SendJoin(const Member& member, const StateId& state) {
    const membership::Join join = {.member = {.id = {GetTask(rank_), member.incarnation},
                                              .address = "test",
                                              .step = state.step,
                                              .state_generation = state.generation},
                                   .last_generation = member.last_generation,
                                   .known_view = member.known ? member.known->generation : 0};
    cluster_.Deliver(
        cluster_.roster_->OnMessage(member.connection, {.join = join}, cluster_.Now()));
    cluster_.changed_.notify_all();
  }

  static constexpr double kRenewSeconds = 10;

  TestCluster& cluster_;
  const int rank_;
  std::shared_ptr<Interrupt> interrupt_;  // the last generation's group uses it
  // The channels of the last generation. Its group fills it.
  std::shared_ptr<std::map<membership::MemberId, std::unique_ptr<collective::Channel>>> kept_ =
      std::make_shared<std::map<membership::MemberId, std::unique_ptr<collective::Channel>>>();
};

inline std::unique_ptr<Replicas> TestCluster::New(int rank) {
  const std::lock_guard lock(mutex_);
  Member& member = members_[rank];
  member.connection = ++connections_;
  ++member.incarnation;
  member.last_generation = 0;
  member.dead = member.over = false;
  member.view.reset();
  member.known.reset();
  member.refused.clear();
  member.interrupt.reset();
  return std::make_unique<Handle>(*this, rank);
}

}  // namespace muster::train
