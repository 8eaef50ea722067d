// Request: one request of a worker after the other, from its bytes to those of its answer, over a
// ServerState. It waits for nobody: whoever has it asks again when the state has changed, so that
// the same code runs behind sockets (server.h) and in the simulation (simulation_test.cc).
#pragma once

#include <variant>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/transport/channel.h"
#include "muster/ps/server_state.h"

namespace muster::ps {

// Of one connection. Errors are what the worker is told. One owner thread; calls with a state want
// its lock, the others none.
class Request {
 public:
  // `incarnation` is proven by the handshake.
  Request(ServerState::Connection from, int64_t incarnation)
      : from_(from), incarnation_(incarnation) {}

  // Begins with another; `message` must live until Print.
  absl::Status Read(const net::transport::Message& message);
  // What it changes.
  absl::Status Take(ServerState& state);
  // False: other requests must come before there is an answer.
  absl::StatusOr<bool> Answer(ServerState& state);
  // Of kWait, which must not wait without an end. Others are asked again at least every second:
  // time may be what they wait for.
  bool is_wait() const { return type_ == kWait; }

  // The answer, or the refusal that `status` is: returns its type; its bytes lie in answer().
  uint16_t Print(const absl::Status& status);
  const Bytes& answer() const { return bytes_; }

 private:
  struct PushBytes {
    Bytes bytes = {};
  };
  template <class M>
  absl::Status ReadAs(ConstBytes bytes);
  absl::Status TakeBegin(ServerState& state, const Begin& begin) const;
  absl::Status TakeSlice(ServerState& state, const Slice& slice);
  absl::Status TakeKeys(ServerState& state, const KeySlice& slice);

  const ServerState::Connection from_;
  const int64_t incarnation_;
  uint16_t type_ = 0;
  std::variant<Empty, Hello, Wait, Begin, Finish, Slice, KeySlice, Ready, Pull, PushBytes, Hold,
               Measure, Settle, Break, Beat>
      request_;
  std::variant<Empty, State, Pulled, Pushed, Held, Measured, Slice, KeySlice> answer_;
  std::vector<float> dense_, rows_;  // what the answer points to
  Bytes bytes_;
};

}  // namespace muster::ps
