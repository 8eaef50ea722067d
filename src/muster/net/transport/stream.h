// A non-blocking, ordered byte stream in both directions: the interface to TCP, unix sockets and
// shared memory.
//
// A Stream knows nothing about messages (channel.h) or the peer's identity (handshake.h). One owner
// thread; another thread may use another Stream to the same peer. Every implementation passes the
// suite stream_conformance.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "muster/base/status.h"

namespace muster::net::transport {

struct TlsKey;  // tls_key.h

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// What to poll in order to sleep. events == 0: do not sleep, something is ready already.
struct PollWish {
  int fd = -1;
  short events = 0;
};

// Errors: UNAVAILABLE, naming the peer, if it is gone or has closed its side; bytes that arrived
// earlier are delivered first. DATA_LOSS if shared memory holds data that no correct peer writes,
// and if TLS finds that bytes were altered in transit.
class Stream {
 public:
  explicit Stream(std::string peer) : peer_(std::move(peer)) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  static constexpr size_t kMaxPieces = 8;
  // Writes the pieces in order, as far as possible now, and returns the number of bytes: 0 while
  // the peer must read first. At most kMaxPieces pieces are used. OK does not mean that the peer
  // has received them. If some bytes were not written, the next call must begin with the first of
  // those: TLS may have encrypted it already, and sends that value whatever the byte is now.
  virtual absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) = 0;

  // The bytes that have arrived, in place: empty while there are none. Valid until the next call on
  // this stream; more may follow once they are consumed. The first byte of the stream lies at an
  // address divisible by 8, and so does every 8th after it.
  virtual absl::StatusOr<ConstBytes> Peek() = 0;
  // Releases the first n bytes that Peek showed last: the peer can use their room again.
  virtual void Consume(size_t n) = 0;
  // Peek, copy and Consume in one call, without the copy if possible. 0: there is nothing to read.
  virtual absl::StatusOr<size_t> Read(MutableBytes to);

  // Says that the owner is about to sleep until there is more to read than the last Peek showed or
  // the last Read took, or more room than the last Write found. Disarm after every Arm; it notices
  // that the peer has closed its side, if there was nothing to read.
  virtual PollWish Arm(bool read, bool write) = 0;
  virtual void Disarm() = 0;

  // Closes both directions. Bytes written before still reach the peer. Later calls return
  // UNAVAILABLE.
  virtual void Close() = 0;

  // For TLS around this stream (tls_stream.h). Encrypts by this key what is written from now on, as
  // records of data. UNIMPLEMENTED if the stream cannot; other errors are those of SetKernelTlsKey
  // (kernel_tls.h).
  virtual absl::Status SetTlsKey(const TlsKey& key);
  // Writes a record of this type (tls_key.h) after what was written; only with a key. False: for so
  // many seconds the peer did not read what must go before. Where `seconds` > 0 it is the last
  // record, after which Close() loses nothing.
  virtual absl::StatusOr<bool> WriteTlsRecord(uint8_t type, ConstBytes record, double seconds);

  // A value that both ends of this connection know and no other connection shares. It goes into the
  // handshake's proofs, to exclude a man in the middle. "" if there is none.
  virtual std::string binding() const { return ""; }

  // The address of the other end, for messages: "tcp://10.0.0.2:4711", "unix:/run/a".
  const std::string& peer() const { return peer_; }

  // Whether bytes cross a network with no better check than TCP's checksums, which miss damage:
  // frames then carry checksums. The code that connects sets it; the handshake makes both ends
  // agree.
  bool wants_checksums() const { return wants_checksums_; }
  void set_wants_checksums(bool wants) { wants_checksums_ = wants; }

 private:
  const std::string peer_;
  bool wants_checksums_ = false;
};

}  // namespace muster::net::transport
