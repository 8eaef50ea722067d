#include "muster/train/allreduce/replica_connections.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "muster/collective/rank_levels.h"
#include "muster/net/transport/dial.h"
#include "muster/net/transport/link_watch.h"
#include "muster/net/transport/local_address.h"

namespace muster::train {
namespace {

using net::transport::ChannelOptions;
using process::Deadline;

// The longest time in which both ends begin a generation on the connection that they have. Both
// have joined the view, and only have to learn of it.
constexpr double kRenewSeconds = 5;

}  // namespace

net::transport::Address GetLocalAddress(const net::Token& key, const membership::Member& member) {
  return net::transport::LocalAddress(key, StrCat(job::TaskName(member.id.task), "\n",
                                                  member.id.incarnation, "\n", member.address));
}

// The longest time to connect to a peer that, according to the chief, is running.
double ReplicaConnections::ConnectSeconds() const {
  return context_.stall_seconds > 0 ? context_.stall_seconds : net::transport::kDefaultStallSeconds;
}

void ReplicaConnections::OnPeer(const net::transport::Peer& peer, std::unique_ptr<Stream> stream) {
  const auto task = job::ParseTaskName(StrCat(peer.identity.role, "-", peer.identity.index));
  if (!task) return;
  const std::lock_guard lock(mutex_);
  const auto generation = static_cast<int64_t>(peer.identity.generation);
  if (generation < generation_) return;
  peers_[{generation, *task}] = std::move(stream);
  arrived_.notify_all();
}

void ReplicaConnections::Keep(const membership::MemberId& member,
                              std::unique_ptr<Channel> channel) {
  kept_[member] = std::move(channel);
}

// Connections that were dialed for generations that are over, and not used: a peer that wants to
// keep such a one must not wait for an answer.
void ReplicaConnections::CloseOlder(int64_t generation) {
  const std::lock_guard lock(mutex_);
  generation_ = generation;
  std::erase_if(peers_, [&](const auto& each) { return each.first.first < generation; });
}

// Uses at the same time what was kept and what this replica dials.
ReachedNeighbours ReplicaConnections::ReachNeighbours(const View& view,
                                                      const Interrupt& interrupt) {
  const int own = view.GetRank(context_.self);
  const std::vector<int> neighbours = collective::GetNeighbours(view.replicas, own);
  const auto get_id = [&](size_t i) { return view.members[static_cast<size_t>(neighbours[i])].id; };
  std::vector<std::unique_ptr<Channel>> channels(neighbours.size());
  for (size_t i = 0; i < neighbours.size(); ++i) {
    const auto found = kept_.find(get_id(i));
    if (found != kept_.end()) channels[i] = std::move(found->second);
  }
  kept_.clear();
  CloseOlder(view.generation);

  std::vector<absl::Status> statuses(neighbours.size());
  std::vector<char> made(neighbours.size());
  const auto reach = [&](size_t i) {
    if (channels[i] != nullptr) {
      statuses[i] = Renew(view, *channels[i], interrupt);
      if (statuses[i].ok() || interrupt.is_set()) return;
      channels[i].reset();  // the peer finds it closed
    }
    auto channel = Reach(view, static_cast<size_t>(neighbours[i]), interrupt);
    statuses[i] = channel.status();
    made[i] = channel.ok();
    if (channel.ok()) channels[i] = *std::move(channel);
  };
  std::vector<std::jthread> threads;
  std::vector<size_t> awaited;
  for (size_t i = 0; i < neighbours.size(); ++i) {
    if (channels[i] == nullptr && neighbours[i] > own) {
      awaited.push_back(i);
    } else {
      threads.emplace_back([&reach, i] { reach(i); });
    }
  }
  for (const size_t i : awaited) reach(i);
  threads.clear();

  ReachedNeighbours reached;
  reached.channels.resize(static_cast<size_t>(view.replicas));
  for (size_t i = 0; i < neighbours.size(); ++i) {
    if (reached.status.ok() && !statuses[i].ok()) {
      reached.status = statuses[i];
      reached.failed = static_cast<size_t>(neighbours[i]);
    }
    reached.made += made[i];
    reached.kept += channels[i] != nullptr && made[i] == 0;
  }
  // A view that broke before it began leaves its connections to the next one.
  const bool broke = !reached.status.ok() && interrupt.is_set();
  for (size_t i = 0; i < neighbours.size(); ++i) {
    if (channels[i] == nullptr) continue;
    if (broke) {
      Keep(get_id(i), std::move(channels[i]));
    } else {
      reached.channels[static_cast<size_t>(neighbours[i])] = std::move(channels[i]);
    }
  }
  return reached;
}

absl::Status ReplicaConnections::Renew(const View& view, Channel& channel,
                                       const Interrupt& interrupt) const {
  const Deadline deadline = Deadline::After(std::min(kRenewSeconds, ConnectSeconds() / 2));
  return channel.Renew(static_cast<uint64_t>(view.generation), deadline, interrupt);
}

// Where a machine has more replicas than cores, one that polls takes the core of another. Members
// with the same host in their addresses are on one machine.
int ReplicaConnections::GetSpinMicros(const View& view) const {
  const auto get_host = [](const membership::Member& member) {
    return std::string_view(member.address).substr(0, member.address.rfind(':'));
  };
  const membership::Member& self = view.members[static_cast<size_t>(view.GetRank(context_.self))];
  const auto near = std::count_if(
      view.members.begin(), view.members.end(),
      [&](const membership::Member& each) { return get_host(each) == get_host(self); });
  return near > sysconf(_SC_NPROCESSORS_ONLN) ? 0 : net::transport::DefaultSpinMicros();
}

absl::StatusOr<std::unique_ptr<ReplicaConnections::Channel>> ReplicaConnections::Reach(
    const View& view, size_t rank, const Interrupt& interrupt) {
  const membership::Member& peer = view.members[rank];
  std::unique_ptr<Stream> stream;
  if (view.GetRank(context_.self) > static_cast<int>(rank)) {
    const Deadline deadline = Deadline::After(ConnectSeconds());
    MUSTER_ASSIGN_OR_RETURN(stream, DialPeer(view, peer, deadline, interrupt));
  } else {
    MUSTER_ASSIGN_OR_RETURN(stream, Await(view, rank, interrupt));
  }
  return std::make_unique<Channel>(
      std::move(stream), ChannelOptions{.peer = job::TaskName(peer.id.task),
                                        .generation = static_cast<uint64_t>(view.generation),
                                        .spin_micros = GetSpinMicros(view)});
}

// Dials over shared memory if the peer proves to be on this machine, else over its address.
absl::StatusOr<std::unique_ptr<net::transport::Stream>> ReplicaConnections::DialPeer(
    const View& view, const membership::Member& peer, Deadline deadline,
    const Interrupt& interrupt) const {
  absl::StatusOr<std::unique_ptr<Stream>> local =
      DialAt(GetLocalAddress(key_, peer), /*wait_for_listener=*/false, view.generation, deadline,
             interrupt);
  if (local.ok() || interrupt.is_set()) return local;
  if (!absl::IsNotFound(local.status())) {
    context_.Note(StrCat(job::TaskName(peer.id.task), " is on this machine, but ",
                         local.status().message(), "; continuing over ", peer.address));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto address, net::transport::ParseAddress(peer.address));
  return DialAt(address, /*wait_for_listener=*/true, view.generation, deadline, interrupt);
}

absl::StatusOr<std::unique_ptr<net::transport::Stream>> ReplicaConnections::DialAt(
    const net::transport::Address& address, bool wait_for_listener, int64_t generation,
    Deadline deadline, const Interrupt& interrupt) const {
  MUSTER_ASSIGN_OR_RETURN(auto stream, Dial(address,
                                            {.protection = context_.protection,
                                             .socket = {.stall_seconds = context_.stall_seconds},
                                             .wait_for_listener = wait_for_listener},
                                            deadline, interrupt));
  MUSTER_RETURN_IF_ERROR(
      DialHandshake(*stream, key_, GetIdentity(context_, generation), kService, deadline, interrupt)
          .status());
  return stream;
}

absl::StatusOr<std::unique_ptr<net::transport::Stream>> ReplicaConnections::Await(
    const View& view, size_t rank, const Interrupt& interrupt) {
  const PeerKey key = {view.generation, view.members[rank].id.task};
  std::unique_lock lock(mutex_);
  constexpr auto kLook = std::chrono::milliseconds(20);  // between checks of the generation
  const Deadline deadline = Deadline::After(ConnectSeconds());
  while (!peers_.contains(key)) {
    if (interrupt.is_set()) return interrupt.status();
    if (context_.stopped()) return absl::CancelledError("stopped");
    if (deadline.expired()) {
      return absl::DeadlineExceededError(StrCat("did not connect within ", ConnectSeconds(), " s"));
    }
    arrived_.wait_for(lock, kLook);
  }
  return std::move(peers_.extract(key).mapped());
}

}  // namespace muster::train
