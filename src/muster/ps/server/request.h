// Request: carries out a worker's requests on a ServerState, one after the other, from the bytes of
// a request to the bytes of its answer. It never waits: its owner calls Answer again when the state
// has changed. The same code therefore runs with sockets (server.h) and in the simulation
// (simulation_test.cc).
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/transport/channel.h"
#include "muster/ps/server/server_state.h"

namespace muster::ps {

// The requests of one connection. Pass errors to Print, which sends them to the worker. One owner
// thread;
// calls that take a ServerState need its lock.
class Request {
 public:
  // `incarnation` was proven by the handshake.
  Request(ServerState::Connection from, int64_t incarnation)
      : from_(from), incarnation_(incarnation) {}

  // Begins the next request; `message` must live until Print.
  absl::Status Read(const net::transport::Message& message);
  // Applies the request's changes to the state.
  absl::Status Apply(ServerState& state);
  // Prepares the answer. Returns false if other requests must arrive before there is an answer.
  // Call it again at least every second, since a request may also wait for time to pass.
  absl::StatusOr<bool> Answer(ServerState& state);
  // Sets the answer to a request that the owner has carried out itself (Server, files).
  template <class A>
  void Set(A answer) {
    answer_ = std::move(answer);
  }
  // Whether the request is a kWait, which must be answered after a limited time even if nothing
  // changed.
  bool is_wait() const { return type_ == kWait; }

  // Writes the answer or, if `status` is an error, the refusal. Returns its type; its bytes are in
  // answer().
  uint16_t Print(const absl::Status& status);
  const Bytes& answer() const { return bytes_; }

 private:
  struct PushBytes {
    Bytes bytes = {};
  };
  template <class M>
  absl::Status ReadAs(ConstBytes bytes);
  absl::Status HandleBegin(ServerState& state, const Begin& begin) const;
  absl::Status HandleSlice(ServerState& state, const Slice& slice);
  absl::Status HandleKeys(ServerState& state, const KeySlice& slice);

  const ServerState::Connection from_;
  const int64_t incarnation_;
  uint16_t type_ = 0;
  std::variant<Empty, Hello, Wait, Begin, Finish, Slice, KeySlice, Ready, Pull, PushBytes, Hold,
               Measure, Settle, Break, Beat>
      request_;
  std::variant<Empty, State, Pulled, Pushed, Held, Measured, Slice, KeySlice, FileText, SavedTables>
      answer_;
  std::vector<float> dense_, rows_;  // memory that answer_ points into
  Bytes bytes_;
};

}  // namespace muster::ps
