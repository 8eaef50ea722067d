// ReplicaConnections: a replica's connections to those with which it exchanges something at each
// step, from generation to generation.
//
// Of two replicas that of the higher rank dials, over shared memory if the other proves to be on
// this machine. If both are in the next generation too, with the same incarnation, they keep their
// connection, without another handshake: each sends the frame that begins the new generation and
// drops all that came before the other's (Channel::Renew). Who has no such connection any more, or
// finds it closed, damaged or silent, closes it, which the other notices; then it is made anew.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/membership/view.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/handshake.h"
#include "muster/process/deadline.h"
#include "muster/train/cluster/task_context.h"

namespace muster::train {

// The address at which a member is reached from its own machine.
net::transport::Address GetLocalAddress(const net::Token& key, const membership::Member& member);

struct ReachedNeighbours {
  // By rank; null for this replica, for one that is no neighbour, and for one that was not reached.
  std::vector<std::unique_ptr<net::transport::Channel>> channels = {};
  int kept = 0, made = 0;  // connections of an earlier generation, and new ones
  size_t failed = 0;       // after an error: the rank that was not reached
  absl::Status status = {};
};

class ReplicaConnections {
 public:
  using Channel = net::transport::Channel;
  using Interrupt = net::transport::Interrupt;
  using Stream = net::transport::Stream;
  using View = membership::View;

  // The service for which a replica asks the other when it dials.
  static constexpr char kService[] = "replica";

  ReplicaConnections(TaskContext context, const net::Token& key)
      : context_(std::move(context)), key_(key) {}

  // A peer that has dialed this replica. Thread-safe.
  void OnPeer(const net::transport::Peer& peer, std::unique_ptr<Stream> stream);
  // Takes a channel of a generation that is over.
  void Keep(const membership::MemberId& member, std::unique_ptr<Channel> channel);

  // Connects to all neighbours, and closes the other connections that were kept.
  ReachedNeighbours ReachNeighbours(const View& view, const Interrupt& interrupt);
  // Makes a new connection to a rank.
  absl::StatusOr<std::unique_ptr<Channel>> Reach(const View& view, size_t rank,
                                                 const Interrupt& interrupt);

 private:
  using PeerKey = std::pair<int64_t, job::TaskId>;  // generation and task

  double ConnectSeconds() const;
  int GetSpinMicros(const View& view) const;
  void CloseOlder(int64_t generation);
  absl::Status Renew(const View& view, Channel& channel, const Interrupt& interrupt) const;
  absl::StatusOr<std::unique_ptr<Stream>> DialPeer(const View& view, const membership::Member& peer,
                                                   process::Deadline deadline,
                                                   const Interrupt& interrupt) const;
  absl::StatusOr<std::unique_ptr<Stream>> DialAt(const net::transport::Address& address,
                                                 bool wait_for_listener, int64_t generation,
                                                 process::Deadline deadline,
                                                 const Interrupt& interrupt) const;
  absl::StatusOr<std::unique_ptr<Stream>> Await(const View& view, size_t rank,
                                                const Interrupt& interrupt);

  const TaskContext context_;
  const net::Token key_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  int64_t generation_ = 0;                            // the present one
  std::map<PeerKey, std::unique_ptr<Stream>> peers_;  // peers that have dialed this replica
  // Of the last generation. Used by the thread that joins generations alone.
  std::map<membership::MemberId, std::unique_ptr<Channel>> kept_;
};

}  // namespace muster::train
