// Bytes both ways, in order, without waiting: the interface of TCP, unix sockets and shared memory.
//
// A Stream knows nothing of messages (channel.h) and nothing of who the peer is (handshake.h). One
// owner thread; another thread may use another Stream of the same peer. stream_conformance.h is
// the suite that every member passes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "muster/base/status.h"

namespace muster::net::transport {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// What to poll in order to sleep. events == 0: do not, something is there already.
struct PollWish {
  int fd = -1;
  short events = 0;
};

// Errors: UNAVAILABLE names the peer, when it is gone or has closed its side; bytes that came
// before that are given first. DATA_LOSS when shared memory holds what no peer of ours writes, and
// when TLS finds that bytes were altered on their way.
class Stream {
 public:
  explicit Stream(std::string peer) : peer_(std::move(peer)) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  static constexpr size_t kMaxPieces = 8;
  // How many bytes of the pieces, in order, went now: 0 while the peer must read first. At most
  // kMaxPieces of them are looked at. OK does not say that the peer has them. Where some did not
  // go, the next call begins with the first of those: TLS may have encrypted it, and sends it as it
  // was then, whatever stands there now.
  virtual absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) = 0;

  // What has come, in place: empty while there is nothing. Valid until the next call on this
  // stream; there may be more behind it once it is consumed. The first byte of the stream lies at
  // an address divisible by 8, and so does every 8th after it.
  virtual absl::StatusOr<ConstBytes> Peek() = 0;
  // Of what Peek showed last, the first n bytes are done with: their room is the peer's again.
  virtual void Consume(size_t n) = 0;
  // Peek, copy and Consume in one, sparing a copy where it can. 0: nothing is there.
  virtual absl::StatusOr<size_t> Read(MutableBytes to);

  // Says that the owner is about to sleep until there is more to read than the last Peek showed or
  // the last Read took, or more room than the last Write found. Disarm after every Arm.
  virtual PollWish Arm(bool read, bool write) = 0;
  virtual void Disarm() = 0;

  // Both ways. What was written before still reaches the peer. Later calls give UNAVAILABLE.
  virtual void Close() = 0;

  // What both ends of this connection know and no other connection has: goes into the handshake's
  // proofs, so that nobody stands in between. "" where there is nothing such.
  virtual std::string binding() const { return ""; }

  // Where the other end is, for messages: "tcp://10.0.0.2:4711", "unix:/run/a".
  const std::string& peer() const { return peer_; }

  // Whether bytes cross a network without a better check than TCP's sums, which miss damage: frames
  // carry checksums then. Whoever connects says so; the handshake makes it the same at both ends.
  bool wants_checksums() const { return wants_checksums_; }
  void set_wants_checksums(bool wants) { wants_checksums_ = wants; }

 private:
  const std::string peer_;
  bool wants_checksums_ = false;
};

}  // namespace muster::net::transport
