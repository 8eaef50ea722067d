#include "muster/train/allreduce/cluster_replicas.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "muster/collective/rank_failure.h"
#include "muster/collective/rank_levels.h"
#include "muster/membership/host.h"
#include "muster/membership/membership.h"
#include "muster/net/transport/acceptor.h"
#include "muster/net/transport/dial.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/link_watch.h"
#include "muster/net/transport/local_address.h"
#include "muster/train/cluster/evaluator_host.h"

namespace muster::train {
namespace {

using collective::Channel;
using membership::View;
using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::ChannelOptions;
using net::transport::Interrupt;
using net::transport::Peer;
using net::transport::Stream;
using process::Deadline;

constexpr char kReplicaService[] = "replica";
constexpr double kTellSeconds = 5;
constexpr int64_t kGenerationsPerIncarnation = 1'000'000;

membership::MembershipOptions MakeMember(const ClusterSpec& spec) {
  const TaskContext& context = spec.context;
  return {.job = context.job,
          .id = {context.self, context.incarnation},
          .agreement = context.agreement,
          .host = spec.tasks.front().address,
          .protection = context.protection,
          .lease_seconds = context.lease_seconds,
          .rendezvous_seconds = context.rendezvous_seconds,
          .stop = context.stop,
          .leaving = context.leaving,
          .note = context.note};
}

net::transport::Address GetLocalAddress(const net::Token& key, const membership::Member& member) {
  return net::transport::LocalAddress(key, StrCat(job::TaskName(member.id.task), "\n",
                                                  member.id.incarnation, "\n", member.address));
}

class ClusterReplicas : public Replicas {
 public:
  ClusterReplicas(ClusterSpec spec, const net::Token& key) : spec_(std::move(spec)), key_(key) {}

  absl::Status Start(const Clock& clock);
  bool is_chief() const override { return spec_.tasks.front().id == spec_.context.self; }
  bool has_evaluator() const override { return spec_.evaluator; }
  bool is_leaving() const override { return IsLeaving(spec_.context.stop, spec_.context.leaving); }
  absl::StatusOr<ReplicaGeneration> Join(const StateId& state, const absl::Status& why) override;
  absl::Status Leave() override;

 private:
  using PeerKey = std::pair<int64_t, job::TaskId>;  // generation and task

  // The longest time to connect to a peer that, according to the chief, is running.
  double ConnectSeconds() const {
    return spec_.context.stall_seconds > 0 ? spec_.context.stall_seconds
                                           : net::transport::kDefaultStallSeconds;
  }
  absl::StatusOr<std::unique_ptr<net::transport::Listener>> Listen();
  absl::Status StartHost(const Clock& clock);
  void ListenLocally(AcceptorOptions options);
  void OnPeer(const Peer& peer, std::unique_ptr<Stream> stream);
  std::optional<membership::Broken> Failure(const absl::Status& why) const;
  absl::StatusOr<ReplicaGeneration> Form(const View& view);
  absl::Status ReachNeighbours(const View& view, std::vector<std::unique_ptr<Channel>>* channels,
                               size_t* failed);
  absl::StatusOr<std::unique_ptr<Channel>> Reach(const View& view, size_t rank);
  absl::StatusOr<std::unique_ptr<Stream>> DialPeer(const View& view, const membership::Member& peer,
                                                   Deadline deadline) const;
  absl::StatusOr<std::unique_ptr<Stream>> DialAt(const net::transport::Address& address,
                                                 bool wait_for_listener, int64_t generation,
                                                 Deadline deadline) const;
  absl::StatusOr<std::unique_ptr<Stream>> Await(const View& view, size_t rank);

  ClusterSpec spec_;
  const net::Token key_;
  std::string advertised_;  // the address that the others dial: this task's name, if it has one
  std::unique_ptr<membership::Host> host_;  // set in the chief
  std::unique_ptr<membership::Membership> member_;
  std::shared_ptr<Interrupt> interrupt_;  // of the present generation
  std::optional<View> view_;              // the present generation's
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<PeerKey, std::unique_ptr<Stream>> peers_;  // peers that have dialed this task
  std::unique_ptr<Acceptor> acceptor_;                // calls OnPeer: must end first
  std::unique_ptr<Acceptor> local_acceptor_;          // like acceptor_, for peers on this machine
};

absl::StatusOr<std::unique_ptr<net::transport::Listener>> ClusterReplicas::Listen() {
  const auto own = std::find_if(spec_.tasks.begin(), spec_.tasks.end(),
                                [&](const auto& task) { return task.id == spec_.context.self; });
  if (own == spec_.tasks.end()) {
    return absl::InvalidArgumentError(
        StrCat(job::TaskName(spec_.context.self), " is not a replica of this cluster"));
  }
  if (spec_.listening.valid()) {
    advertised_ = ToString(own->address);
    return net::transport::Listener::Adopt(std::move(spec_.listening), own->address.kind);
  }
  auto listener = net::transport::Listener::Listen(own->address);
  if (listener.ok()) advertised_ = ToString((*listener)->address());
  return listener;
}

absl::Status ClusterReplicas::StartHost(const Clock& clock) {
  membership::RosterSpec roster = {
      .agreement = spec_.context.agreement,
      .min_replicas = spec_.min_replicas,
      .lease_seconds = spec_.context.lease_seconds,
      .rendezvous_seconds = spec_.context.rendezvous_seconds,
      .first_generation = spec_.context.incarnation * kGenerationsPerIncarnation + 1};
  for (const auto& task : spec_.tasks) roster.tasks.push_back(task.id);
  if (spec_.evaluator) roster.tasks.push_back({job::TaskType::kEvaluator, 0});
  MUSTER_ASSIGN_OR_RETURN(host_,
                          membership::Host::Start(std::move(roster), clock, spec_.context.note));
  return absl::OkStatus();
}

absl::Status ClusterReplicas::Start(const Clock& clock) {
  if (spec_.tasks.empty()) return absl::InvalidArgumentError("the cluster has no tasks");
  MUSTER_ASSIGN_OR_RETURN(auto listener, Listen());
  if (is_chief()) MUSTER_RETURN_IF_ERROR(StartHost(clock));
  AcceptorOptions options =
      MakeAcceptorOptions(spec_.context, key_, [this](std::string_view service) {
        return service == kReplicaService || (service == membership::kService && host_ != nullptr);
      });
  options.on_peer = [this](const Peer& peer, std::unique_ptr<Stream> stream) {
    if (peer.service == membership::kService) {
      host_->Serve(peer, std::move(stream));
    } else {
      OnPeer(peer, std::move(stream));
    }
  };
  MUSTER_ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(std::move(listener), options));
  ListenLocally(std::move(options));
  membership::MembershipOptions options_of_member = MakeMember(spec_);
  options_of_member.address = advertised_;
  if (is_chief()) options_of_member.host = acceptor_->near_address();
  MUSTER_ASSIGN_OR_RETURN(member_,
                          membership::Membership::Start(std::move(options_of_member), key_));
  return absl::OkStatus();
}

// If this fails, peers on this machine use this task's address, like those on other machines.
void ClusterReplicas::ListenLocally(AcceptorOptions options) {
  const auto address = GetLocalAddress(
      key_, {.id = {spec_.context.self, spec_.context.incarnation}, .address = advertised_});
  local_acceptor_ = Acceptor::StartLocally(address, std::move(options), spec_.context.note);
}

void ClusterReplicas::OnPeer(const Peer& peer, std::unique_ptr<Stream> stream) {
  const auto task = job::ParseTaskName(StrCat(peer.identity.role, "-", peer.identity.index));
  if (!task) return;
  const std::lock_guard lock(mutex_);
  peers_[{static_cast<int64_t>(peer.identity.generation), *task}] = std::move(stream);
  arrived_.notify_all();
}

std::optional<membership::Broken> ClusterReplicas::Failure(const absl::Status& why) const {
  if (why.ok() || !view_) return std::nullopt;
  const auto failure = collective::ParseRankFailure(ToStd(why.message()));
  if (!failure) return std::nullopt;
  const auto member = [this](int rank) -> std::optional<membership::MemberId> {
    const auto index = static_cast<size_t>(rank);
    if (index >= view_->members.size()) return std::nullopt;
    return view_->members[index].id;
  };
  const auto culprit = member(failure->rank);
  if (!culprit) return std::nullopt;
  membership::Broken broken = {.generation = view_->generation,
                               .culprit = *culprit,
                               .cause = StrCat("was lost: ", failure->cause)};
  // The replica that saw the failure has told all others, and any of them may be the first to tell
  // the chief.
  if (failure->seen_by) broken.seen_by = member(*failure->seen_by);
  return broken;
}

absl::StatusOr<ReplicaGeneration> ClusterReplicas::Join(const StateId& state,
                                                        const absl::Status& why) {
  absl::Status failed = why;
  while (true) {
    absl::StatusOr<View> view = member_->Join(state, Failure(failed));
    // If the host itself has ended training, its status is the reason.
    if (!view.ok() && host_ != nullptr) MUSTER_RETURN_IF_ERROR(host_->status());
    MUSTER_RETURN_IF_ERROR(view.status());
    view_ = *std::move(view);
    interrupt_ = member_->interrupt();
    absl::StatusOr<ReplicaGeneration> generation = Form(*view_);
    if (generation.ok() || !absl::IsAborted(generation.status())) return generation;
    failed = generation.status();
  }
}

absl::StatusOr<ReplicaGeneration> ClusterReplicas::Form(const View& view) {
  const auto n = static_cast<size_t>(view.replicas);
  const auto own = static_cast<size_t>(view.GetRank(spec_.context.self));
  ReplicaGeneration generation = {.generation = view.generation};
  std::vector<std::string> names;
  for (size_t rank = 0; rank < n; ++rank) {
    generation.states.push_back(view.members[rank].state());
    names.push_back(job::TaskName(view.members[rank].id.task));
  }
  std::vector<std::unique_ptr<Channel>> channels(n);
  size_t rank = 0;
  const absl::Status reached = ReachNeighbours(view, &channels, &rank);
  if (!reached.ok() && interrupt_->is_set()) {
    return absl::AbortedError(interrupt_->status().message());
  }
  if (!reached.ok() && spec_.context.stopped()) {
    return absl::CancelledError(StrCat("stopped while waiting for ", names[rank]));
  }
  // Two replicas that refuse each other would do so in the next generation too.
  if (absl::IsFailedPrecondition(reached) || absl::IsUnauthenticated(reached)) {
    return Annotate(reached, names[rank]);
  }
  // The state of a newcomer may come from a replica that is no neighbour.
  collective::GroupOptions options = {
      .names = std::move(names),
      .connect = [this, view](int other) { return Reach(view, static_cast<size_t>(other)); }};
  generation.group = std::make_unique<collective::Group>(static_cast<int>(own), std::move(channels),
                                                         *interrupt_, std::move(options));
  if (!reached.ok()) return generation.group->Unreached(static_cast<int>(rank), reached);
  return generation;
}

// Connects to the ranks with which this one exchanges something at each step: to those that it
// dials at the same time. After an error *failed is the rank that was not reached.
absl::Status ClusterReplicas::ReachNeighbours(const View& view,
                                              std::vector<std::unique_ptr<Channel>>* channels,
                                              size_t* failed) {
  const int own = view.GetRank(spec_.context.self);
  const std::vector<int> neighbours = collective::GetNeighbours(view.replicas, own);
  std::vector<absl::Status> statuses(neighbours.size());
  const auto reach = [&](size_t i) {
    const auto rank = static_cast<size_t>(neighbours[i]);
    auto channel = Reach(view, rank);
    statuses[i] = channel.status();
    if (channel.ok()) (*channels)[rank] = *std::move(channel);
  };
  std::vector<std::jthread> dials;
  size_t i = 0;
  for (; i + 1 < neighbours.size() && neighbours[i + 1] < own; ++i) {
    dials.emplace_back([&reach, i] { reach(i); });
  }
  for (; i < neighbours.size(); ++i) reach(i);
  dials.clear();
  for (i = 0; i < neighbours.size(); ++i) {
    *failed = static_cast<size_t>(neighbours[i]);
    MUSTER_RETURN_IF_ERROR(statuses[i]);
  }
  return absl::OkStatus();
}

// Connects to another rank. Of two ranks the higher one dials.
absl::StatusOr<std::unique_ptr<Channel>> ClusterReplicas::Reach(const View& view, size_t rank) {
  const membership::Member& peer = view.members[rank];
  std::unique_ptr<Stream> stream;
  if (view.GetRank(spec_.context.self) > static_cast<int>(rank)) {
    MUSTER_ASSIGN_OR_RETURN(stream, DialPeer(view, peer, Deadline::After(ConnectSeconds())));
  } else {
    MUSTER_ASSIGN_OR_RETURN(stream, Await(view, rank));
  }
  return std::make_unique<Channel>(
      std::move(stream), ChannelOptions{.peer = job::TaskName(peer.id.task),
                                        .generation = static_cast<uint64_t>(view.generation),
                                        .spin_micros = net::transport::DefaultSpinMicros()});
}

// Dials over shared memory if the peer proves to be on this machine, else over its address.
absl::StatusOr<std::unique_ptr<Stream>> ClusterReplicas::DialPeer(const View& view,
                                                                  const membership::Member& peer,
                                                                  Deadline deadline) const {
  absl::StatusOr<std::unique_ptr<Stream>> local =
      DialAt(GetLocalAddress(key_, peer), /*wait_for_listener=*/false, view.generation, deadline);
  if (local.ok() || interrupt_->is_set()) return local;
  if (!absl::IsNotFound(local.status())) {
    spec_.context.Note(StrCat(job::TaskName(peer.id.task), " is on this machine, but ",
                              local.status().message(), "; continuing over ", peer.address));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto address, net::transport::ParseAddress(peer.address));
  return DialAt(address, /*wait_for_listener=*/true, view.generation, deadline);
}

absl::StatusOr<std::unique_ptr<Stream>> ClusterReplicas::DialAt(
    const net::transport::Address& address, bool wait_for_listener, int64_t generation,
    Deadline deadline) const {
  MUSTER_ASSIGN_OR_RETURN(auto stream,
                          Dial(address,
                               {.protection = spec_.context.protection,
                                .socket = {.stall_seconds = spec_.context.stall_seconds},
                                .wait_for_listener = wait_for_listener},
                               deadline, *interrupt_));
  MUSTER_RETURN_IF_ERROR(DialHandshake(*stream, key_, GetIdentity(spec_.context, generation),
                                       kReplicaService, deadline, *interrupt_)
                             .status());
  return stream;
}

absl::StatusOr<std::unique_ptr<Stream>> ClusterReplicas::Await(const View& view, size_t rank) {
  const PeerKey key = {view.generation, view.members[rank].id.task};
  std::unique_lock lock(mutex_);
  // Connections of generations that are over will not be used.
  std::erase_if(peers_, [&](const auto& each) { return each.first.first < view.generation; });
  constexpr auto kLook = std::chrono::milliseconds(20);  // between checks of the generation
  const Deadline deadline = Deadline::After(ConnectSeconds());
  while (!peers_.contains(key)) {
    if (interrupt_->is_set()) return interrupt_->status();
    if (spec_.context.stopped()) return absl::CancelledError("stopped");
    if (deadline.expired()) {
      return absl::DeadlineExceededError(StrCat("did not connect within ", ConnectSeconds(), " s"));
    }
    arrived_.wait_for(lock, kLook);
  }
  return std::move(peers_.extract(key).mapped());
}

absl::Status ClusterReplicas::Leave() {
  if (!is_chief()) return member_->WaitForEnd();
  const absl::Status evaluated =
      spec_.evaluator ? host_->AwaitEvaluators(spec_.context.stop) : absl::OkStatus();
  // In that case the replacement waits for the evaluator and ends the training.
  if (spec_.evaluator && is_leaving()) return absl::CancelledError(kLeftBeforeEvaluation);
  host_->End(kTellSeconds);
  return TrainedWithoutEvaluator(evaluated, spec_.context.note);
}

class ClusterWatch : public TrainingWatch {
 public:
  explicit ClusterWatch(std::unique_ptr<membership::Membership> member)
      : member_(std::move(member)) {}
  absl::StatusOr<bool> AwaitEnd(double seconds) override { return member_->AwaitTrained(seconds); }
  absl::Status Leave() override { return member_->Leave(); }

 private:
  const std::unique_ptr<membership::Membership> member_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingWatch>> WatchCluster(ClusterSpec spec,
                                                            const net::Token& key) {
  if (spec.tasks.empty()) return absl::InvalidArgumentError("the cluster has no chief");
  MUSTER_ASSIGN_OR_RETURN(auto member, membership::Membership::Start(MakeMember(spec), key));
  return std::make_unique<ClusterWatch>(std::move(member));
}

absl::StatusOr<std::unique_ptr<Replicas>> JoinCluster(ClusterSpec spec, const net::Token& key,
                                                      const Clock& clock) {
  auto replicas = std::make_unique<ClusterReplicas>(std::move(spec), key);
  MUSTER_RETURN_IF_ERROR(replicas->Start(clock));
  return replicas;
}

}  // namespace muster::train
