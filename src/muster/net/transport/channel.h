// Messages over a Stream, and the exchange on which collectives are built.
//
// A message has a type and 0 bytes or more. It is sent as frames (frame.h), each with the
// generation and a sequence number, so that a message that is lost, repeated, damaged or from
// another generation is an error and never mistaken for another. Between hosts frames carry
// checksums.
//
// Errors, chosen by what the caller does next; messages name the peer:
//   UNAVAILABLE        the peer is gone
//   DEADLINE_EXCEEDED  the peer is silent, or does not read
//   ABORTED            fenced: the two ends have different generations, both named
//   DATA_LOSS          not the expected frame: wrong magic, checksum, number, size or type
//   any                the status that the peer sent (SendFailure), or the Interrupt's
//   status
// After an error within a message the channel is broken: every later call except SendFailure
// returns the first error. A call that ended before any byte of its message moved (a deadline while
// the peer was silent) may be repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"

#include "muster/base/status.h"
#include "muster/net/transport/frame_reader.h"
#include "muster/net/transport/frame_writer.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

struct ChannelOptions {
  std::string peer = {};    // "worker 1", before the stream's address in messages
  uint64_t generation = 0;  // in every frame sent, and required in every frame received
  // Checksums of payloads, sent and required from the peer; always on if the stream wants them
  // (stream.h).
  bool checksum = false;
  size_t max_message_bytes = size_t{1} << 30;  // for Receive; larger ones are DATA_LOSS
  // How long to poll before sleeping; other threads that want the core get it meanwhile. Saves a
  // wake-up (5 to 50 us) per wait. It must be longer than a wake-up, or two peers that wait for
  // each other in turn sleep every time.
  int spin_micros = 0;
};

// 150 us if the machine has two cores or more, else 0.
int DefaultSpinMicros();

struct Message {
  uint16_t type = 0;
  size_t size = 0;
  std::unique_ptr<std::byte[]> data = {};

  ConstBytes bytes() const { return {data.get(), size}; }
};

// Called with the bytes of a message in order, in place, as they arrive: `offset` is their position
// in the message. Each part begins at an address and an offset divisible by 4; so is its size,
// except the last part's.
using Take = absl::FunctionRef<void(ConstBytes part, size_t offset)>;
// Returns memory for a message of so many bytes.
using Room = absl::FunctionRef<absl::StatusOr<MutableBytes>(size_t bytes)>;

// One owner thread, which also owns the stream.
class Channel {
 public:
  explicit Channel(std::unique_ptr<Stream> stream, ChannelOptions options = {});
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Returns when everything is written; the bytes are not kept. `type` is below kFirstReservedType.
  absl::Status Send(uint16_t type, ConstBytes message, process::Deadline deadline,
                    const Interrupt& interrupt);
  // The next message.
  absl::StatusOr<Message> Receive(process::Deadline deadline, const Interrupt& interrupt);

  // Sends one message to `to` and receives one from `from` at the same time, so that any number of
  // peers that do so in a ring or a pair never deadlock. `from` must send exactly `in_bytes` of
  // `type`; `to` and `from` may be the same. `take` gets the bytes as they arrive, before the
  // checksum is known: after an error those bytes are invalid.
  static absl::Status Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               size_t in_bytes, Take take, process::Deadline deadline,
                               const Interrupt& interrupt);
  // Like the Exchange above, but stores the message in `in`, without an intermediate copy if the
  // stream allows it. `in` must not overlap `out`.
  static absl::Status Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               MutableBytes in, process::Deadline deadline,
                               const Interrupt& interrupt);
  // Like the Exchange above, for a message whose size the receiver does not know: `room` is called
  // once with that size, and returns where the message is to be stored, or an error, which ends the
  // exchange before any memory is taken.
  static absl::Status Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from, Room room,
                               process::Deadline deadline, const Interrupt& interrupt);
  // The receiving half alone; Send is the other half.
  absl::Status ReceiveParts(uint16_t type, size_t bytes, Take take, process::Deadline deadline,
                            const Interrupt& interrupt);
  absl::Status ReceiveInto(uint16_t type, MutableBytes in, process::Deadline deadline,
                           const Interrupt& interrupt);

  // Tells the peer why this end gives up: the peer's current or next call that reads from this end
  // returns `why` unchanged. Also works on a broken channel, as far as the stream still carries
  // data.
  absl::Status SendFailure(const absl::Status& why, process::Deadline deadline);

  void Close() { stream_->Close(); }

  // Looks whether the peer has closed the connection: then Send fails. A call that waits for the
  // peer notices that by itself, and so does Send over a socket; over shared memory, Send alone
  // would only fill the ring. Bytes that have not been received hide the close.
  void LookForClose();

  // "worker 1 (tcp://10.0.0.2:4711)"
  const std::string& peer() const { return peer_; }
  uint64_t generation() const { return options_.generation; }
  // Begins a later generation on the same connection, which the peer must do at the same time.
  // What either has sent of older generations is dropped, also the rest of a message that was given
  // up; an error of such a message is forgotten. After an error nothing may be sent or received;
  // if `interrupt` caused it, Renew may be called for a still later generation.
  absl::Status Renew(uint64_t generation, process::Deadline deadline, const Interrupt& interrupt);
  Stream& stream() { return *stream_; }

 private:
  friend class ExchangeLoop;

  struct Expected {
    uint16_t type = 0;
    size_t bytes = 0;
  };
  using Pump = absl::FunctionRef<absl::StatusOr<bool>(FrameReader& reader)>;
  // `to` has begun to write, or is null.
  static absl::Status Expect(Expected expected, Channel* to, Channel& from, Pump pump,
                             process::Deadline deadline, const Interrupt& interrupt);

  absl::Status Usable() const;

  const std::unique_ptr<Stream> stream_;
  ChannelOptions options_;
  const std::string peer_;
  FrameWriter writer_;
  FrameReader reader_;
  absl::Status broken_;
};

}  // namespace muster::net::transport
