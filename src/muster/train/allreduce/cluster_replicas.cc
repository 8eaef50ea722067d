#include "muster/train/allreduce/cluster_replicas.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/collective/rank_failure.h"
#include "muster/membership/host.h"
#include "muster/membership/membership.h"
#include "muster/net/transport/acceptor.h"
#include "muster/train/allreduce/replica_connections.h"
#include "muster/train/cluster/evaluator_host.h"

namespace muster::train {
namespace {

using collective::Channel;
using membership::View;
using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Interrupt;
using net::transport::Peer;
using net::transport::Stream;

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
          .note = context.note,
          .has_ended = context.has_ended};
}

class ClusterReplicas : public Replicas {
 public:
  ClusterReplicas(ClusterSpec spec, const net::Token& key)
      : spec_(std::move(spec)),
        key_(key),
        connections_(std::make_shared<ReplicaConnections>(spec_.context, key_)) {}

  absl::Status Start(const Clock& clock);
  bool is_chief() const override { return spec_.tasks.front().id == spec_.context.self; }
  bool has_evaluator() const override { return spec_.evaluator; }
  bool is_leaving() const override { return IsLeaving(spec_.context.stop, spec_.context.leaving); }
  absl::StatusOr<ReplicaGeneration> Join(const StateId& state, const absl::Status& why) override;
  absl::Status Leave() override;
  absl::Status LeaveStopped() override { return EndForAll(/*stopped=*/true); }

 private:
  absl::Status EndForAll(bool stopped);
  absl::StatusOr<std::unique_ptr<net::transport::Listener>> Listen();
  absl::Status StartHost(const Clock& clock);
  void ListenLocally(AcceptorOptions options);
  std::optional<membership::Broken> Failure(const absl::Status& why) const;
  absl::StatusOr<ReplicaGeneration> Form(const View& view);

  ClusterSpec spec_;
  const net::Token key_;
  std::string advertised_;  // the address that the others dial: this task's name, if it has one
  std::unique_ptr<membership::Host> host_;  // set in the chief
  std::unique_ptr<membership::Membership> member_;
  std::shared_ptr<Interrupt> interrupt_;  // of the present generation
  std::optional<View> view_;              // the present generation's
  // A group of channels returns them here, also if it outlives this object.
  const std::shared_ptr<ReplicaConnections> connections_;
  std::unique_ptr<Acceptor> acceptor_;        // gives connections_ those of peers: must end first
  std::unique_ptr<Acceptor> local_acceptor_;  // like acceptor_, for peers on this machine
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
        return service == ReplicaConnections::kService ||
               (service == membership::kService && host_ != nullptr);
      });
  options.on_peer = [this](const Peer& peer, std::unique_ptr<Stream> stream) {
    if (peer.service == membership::kService) {
      host_->Serve(peer, std::move(stream));
    } else {
      connections_->OnPeer(peer, std::move(stream));
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
  ReachedNeighbours reached = connections_->ReachNeighbours(view, *interrupt_);
  const absl::Status& status = reached.status;
  if (!status.ok() && interrupt_->is_set()) {
    return absl::AbortedError(interrupt_->status().message());
  }
  const std::string& failed = names[reached.failed];
  if (!status.ok() && spec_.context.stopped()) {
    return absl::CancelledError(StrCat("stopped while waiting for ", failed));
  }
  // Two replicas that refuse each other would do so in the next generation too.
  if (absl::IsFailedPrecondition(status) || absl::IsUnauthenticated(status)) {
    return Annotate(status, failed);
  }
  generation.kept = reached.kept;
  generation.made = reached.made;
  collective::GroupOptions options = {
      .names = std::move(names),
      // The state of a newcomer may come from a replica that is no neighbour.
      .connect =
          [this, view](int other) {
            return connections_->Reach(view, static_cast<size_t>(other), *interrupt_);
          },
      .retire =
          [connections = connections_, view](int other, std::unique_ptr<Channel> channel) {
            connections->Keep(view.members[static_cast<size_t>(other)].id, std::move(channel));
          }};
  generation.group = std::make_unique<collective::Group>(
      static_cast<int>(own), std::move(reached.channels), *interrupt_, std::move(options));
  if (!status.ok()) {
    return generation.group->Unreached(static_cast<int>(reached.failed), status);
  }
  member_->SetFormed();
  return generation;
}

absl::Status ClusterReplicas::Leave() {
  return is_chief() ? EndForAll(/*stopped=*/false) : member_->WaitForEnd();
}

absl::Status ClusterReplicas::EndForAll(bool stopped) {
  const bool is_evaluated = spec_.evaluator && !stopped;
  const absl::Status evaluated =
      is_evaluated ? host_->AwaitEvaluators(spec_.context.stop) : absl::OkStatus();
  // In that case the replacement waits for the evaluator and ends the training.
  if (is_evaluated && is_leaving()) return absl::CancelledError(kLeftBeforeEvaluation);
  host_->End(kTellSeconds, stopped);
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
