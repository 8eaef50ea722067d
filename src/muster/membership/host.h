// Host: runs the roster, in the chief's process. Each member sends requests over its own
// connection; the answers contain all messages for the member.
//
// The protocol (docs/formats/membership.md): a member sends a message, which may be empty, and the
// host answers with any number of messages and an end. A member sends one at least every
// kBeatSeconds.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/membership/roster.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/handshake.h"

namespace muster::membership {

// The service that a member names in its handshake (net/transport/handshake.h).
inline constexpr char kService[] = "membership";
// Between two messages of a member; in a view of many members this long for each of them, so that
// the host has no more to do. There are four in a lease at least.
inline constexpr double kBeatSeconds = 0.1, kBeatSecondsOfMember = 0.002;
enum MessageType : uint16_t { kMessage = 1, kEnd = 2 };
inline constexpr size_t kMaxMessageBytes = size_t{16} << 20;

// Thread-safe.
class Host {
 public:
  using Note = std::function<void(const std::string& text)>;
  // `clock` must outlive the host. `note`, which may be empty, is for people: which task was
  // refused, and why, and which connection had damaged bytes. It is called on the host's own
  // threads.
  static absl::StatusOr<std::unique_ptr<Host>> Start(RosterSpec spec, const Clock& clock,
                                                     Note note = {});
  // Closes all connections.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Serves a member that has authenticated itself; it can join only as the task that it has proven
  // to be. Returns at once.
  void Serve(const net::transport::Peer& peer, std::unique_ptr<net::transport::Stream> stream);

  // Call it when the last checkpoint is written. Returns when the evaluators have left, or when
  // `stop` (may be null) became true. DEADLINE_EXCEEDED: an evaluator did not arrive in time.
  absl::Status AwaitEvaluators(const std::atomic<bool>* stop);
  // The number of connection threads; those of ended connections are removed when the next
  // connection arrives.
  size_t threads();

  // Not OK if training has failed; the error is the reason (Roster::status).
  absl::Status status();

  // Ends the training; `stopped` as in Roster::OnEnd. Returns when every member has been informed,
  // or after `seconds`.
  void End(double seconds, bool stopped = false);

 private:
  struct Connection {
    std::vector<Message> pending;
    bool close = false;
  };

  Host(RosterSpec spec, const Clock& clock, Note note,
       std::unique_ptr<net::transport::Interrupt> stop);
  void Converse(Roster::Connection id, job::TaskId task, net::transport::Channel& channel);
  absl::Status Answer(Roster::Connection id, net::transport::Channel& channel, bool* close);
  void Deliver(std::vector<Roster::Outgoing> outgoing);  // with mutex_ held
  void Tick(const std::stop_token& stop);
  double Now() const { return static_cast<double>(clock_.MonotonicNanos()) * 1e-9; }

  const double lease_seconds_;
  const Clock& clock_;
  const Note note_;
  const std::unique_ptr<net::transport::Interrupt> stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Roster roster_;
  std::map<Roster::Connection, Connection> connections_;
  Roster::Connection last_connection_ = 0;
  std::map<Roster::Connection, std::jthread> threads_;  // one for each connection
  std::jthread ticker_;
};

}  // namespace muster::membership
