// Messages over a Stream, and the exchange that collectives are made of.
//
// A message has a type and 0 bytes or more. It travels as frames (frame.h) that carry the epoch and
// a number each, so that a message that is lost, repeated, damaged or from another epoch is an
// error and never taken for another. Off the host frames carry checksums.
//
// Errors, by what the caller does next; messages name the peer:
//   UNAVAILABLE        the peer is gone
//   DEADLINE_EXCEEDED  the peer is silent, or does not read
//   ABORTED            fenced: peer and we are of different epochs, both named
//   DATA_LOSS          what came is no frame that was due: magic, checksum, number, size, type
//   any                what the peer said before it gave up (SendFailure), or the Interrupt's
//   status
// After an error within a message the channel is broken: it says so, with the first error, to every
// later call but SendFailure. A call that ended before any byte of its message moved (a deadline
// while the peer was silent) may be made again.
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
  std::string peer = {};  // "worker 1", before the stream's address in messages
  uint64_t epoch = 0;     // in every frame sent and wanted in every frame that comes
  // Of payloads, sent and wanted of the peer; where the stream wants them (stream.h) in any case.
  bool checksum = false;
  size_t max_message_bytes = size_t{1} << 30;  // of Receive; larger ones are DATA_LOSS
  // How long to ask again and again before sleeping; others who want the core get it meanwhile.
  // Shortens a wait by a wake-up (5 to 50 us). Longer than a wake-up it must be, or two peers that
  // wait for each other in turn sleep every time.
  int spin_micros = 0;
};

// 150 us where the machine has two cores or more, else 0.
int DefaultSpinMicros();

struct Message {
  uint16_t type = 0;
  size_t size = 0;
  std::unique_ptr<std::byte[]> data = {};

  ConstBytes bytes() const { return {data.get(), size}; }
};

// Called with the bytes of a message in order, in place, as they come: `offset` is where they are
// in it. Begins at an address and an offset divisible by 4; its size is, but the last's.
using Take = absl::FunctionRef<void(ConstBytes part, size_t offset)>;

// One owner thread, which also owns the stream.
class Channel {
 public:
  explicit Channel(std::unique_ptr<Stream> stream, ChannelOptions options = {});
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Until all is written; the bytes are not kept. `type` is below kFirstReservedType.
  absl::Status Send(uint16_t type, ConstBytes message, process::Deadline deadline,
                    const Interrupt& interrupt);
  // The next message.
  absl::StatusOr<Message> Receive(process::Deadline deadline, const Interrupt& interrupt);

  // One message to `to` and one from `from`, both at once, so that any number of peers that do it
  // in a ring or a pair never wait for each other. `from` must send exactly `in_bytes` of `type`;
  // `to` and `from` may be the same. `take` gets the bytes as they come, before the checksum is
  // known: after an error what it was given is worth nothing.
  static absl::Status Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               size_t in_bytes, Take take, process::Deadline deadline,
                               const Interrupt& interrupt);
  // The same to memory, without a copy in between where the stream allows it. `in` may not overlap
  // `out`.
  static absl::Status Exchange(uint16_t type, Channel& to, ConstBytes out, Channel& from,
                               MutableBytes in, process::Deadline deadline,
                               const Interrupt& interrupt);
  // The receiving half alone, as Send is the other.
  absl::Status ReceiveParts(uint16_t type, size_t bytes, Take take, process::Deadline deadline,
                            const Interrupt& interrupt);
  absl::Status ReceiveInto(uint16_t type, MutableBytes in, process::Deadline deadline,
                           const Interrupt& interrupt);

  // Tells the peer why we give up: its next or present call that reads from us returns `why`, in
  // its own words. For a channel that is broken too, as far as the stream still carries.
  absl::Status SendFailure(const absl::Status& why, process::Deadline deadline);

  void Close() { stream_->Close(); }

  // "worker 1 (tcp://10.0.0.2:4711)"
  const std::string& peer() const { return peer_; }
  uint64_t epoch() const { return options_.epoch; }
  // Between messages only. Frames of the old epoch that are still under way will be refused.
  void set_epoch(uint64_t epoch);
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
