// Reads messages from the frames of a Stream, in pieces as they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

#include "muster/base/status.h"
#include "muster/net/transport/frame.h"
#include "muster/net/transport/stream.h"

namespace muster::net::transport {

// The reading half of a Channel: one owner thread, which owns the stream. Never allocates memory by
// sizes that a peer announces. Errors as in channel.h; a failure that the peer sent is returned
// unchanged, and peer_failed() is true from then on. After an error it must not be called again.
class FrameReader {
 public:
  // `checksum`: frames without a checksum are refused; a checksum that is present is always
  // verified.
  FrameReader(Stream* stream, uint64_t generation, bool checksum)
      : stream_(stream), generation_(generation), checksum_(checksum) {}

  // Reads up to the header of the next message. True: it has arrived, and type() and
  // message_bytes() describe it; false: more bytes are needed. The previous message must be done.
  absl::StatusOr<bool> Open();
  bool open() const { return open_; }  // until the last byte, trailer included, was taken
  uint16_t type() const { return header_.type; }
  uint64_t message_bytes() const { return header_.message_bytes; }

  // Passes the message's next bytes, at most about 64 KiB per call, to `take` (channel.h). True:
  // something moved. Only while open().
  absl::StatusOr<bool> Pump(absl::FunctionRef<void(ConstBytes part, size_t offset)> take);
  // Like Pump, but stores the bytes at their position in `whole`, which has message_bytes().
  absl::StatusOr<bool> PumpInto(MutableBytes whole);

  // Whether a byte of the next message has arrived.
  bool begun() const { return open_ || have_ > 0; }
  size_t received() const { return taken_; }
  bool peer_failed() const { return peer_failed_; }

  // Drops what has arrived of older generations, up to the frame that begins `generation`. True:
  // something moved; *begun: that frame has arrived, and messages of `generation` follow. It may be
  // called again after an error of the peer's, but not of a reader that is damaged(), and for a
  // later generation when the peer has not begun this one.
  absl::StatusOr<bool> Renew(uint64_t generation, bool* begun);
  // Bytes came that no correct peer sends: it is not known where the next frame begins.
  bool damaged() const { return damaged_; }

 private:
  enum class Part { kHeader, kPayload, kFailure, kTail };

  // Reads what lies between payloads, as far as it has arrived: tails, headers, a failure. Stops at
  // a payload (part_), at the end of a message (!open_), or when bytes are missing. True: something
  // moved.
  absl::StatusOr<bool> PumpBetween();
  // Appends to the have_ bytes at `to` until there are `size`. False: more are needed.
  absl::StatusOr<bool> Gather(std::byte* to, size_t size);
  absl::Status ReadHeader();
  absl::Status CheckOrder(const FrameHeader& header) const;
  absl::Status CheckContinuation(const FrameHeader& header) const;
  absl::Status ReadTail();
  absl::Status ReadFailure();
  // Read what Renew drops, and the frame that ends it.
  absl::StatusOr<bool> DropPayload();
  absl::Status DropHeader(uint64_t generation);
  absl::Status EndRenewal(uint64_t generation);
  void Took(ConstBytes part);

  Stream* const stream_;
  uint64_t generation_;
  const bool checksum_;
  uint64_t sequence_ = 0;  // of the next frame

  Part part_ = Part::kHeader;
  size_t have_ = 0;  // bytes of a header, tail or failure that is not complete
  FrameHeaderBytes header_bytes_ = {};
  FrameTailBytes tail_ = {};
  std::string failure_;

  FrameHeader header_ = {};  // of the message's frame
  bool open_ = false;
  bool given_up_ = false;    // only a failure may follow
  size_t taken_ = 0;         // bytes of the message
  size_t payload_left_ = 0;  // of the frame
  uint32_t crc_ = 0;
  bool peer_failed_ = false;
  bool damaged_ = false;
  bool renewing_ = false;  // the present frame is the one that begins a generation
};

}  // namespace muster::net::transport
