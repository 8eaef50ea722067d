// Writes a message as frames into a Stream, as far as the stream takes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/frame.h"
#include "muster/net/transport/stream.h"

namespace muster::net::transport {

// The writing half of a Channel: one owner thread, which owns the stream.
class FrameWriter {
 public:
  FrameWriter(Stream* stream, uint64_t generation, bool checksum)
      : stream_(stream), generation_(generation), checksum_(checksum) {}

  // `message` must stay valid until done() or Abandon(). The previous message must be done.
  void Begin(uint16_t type, ConstBytes message);
  // Writes what the stream takes now, at most about one frame. True: something was written.
  absl::StatusOr<bool> Pump();
  bool done() const { return !open_; }
  // Whether a byte of the message has been written.
  bool begun() const { return framed_ > 0 || at_ > 0; }
  size_t payload_sent() const;

  // Gives up the message; its memory is no longer used. If a frame was written in part, the rest is
  // sent as zeros before the next message, and its trailer says so. One byte offered before may be
  // sent instead (stream.h): a reader of such a frame only notes that it was given up.
  void Abandon();
  // Like Begin, for a status that is sent as kFailureType; to be called after Abandon.
  void BeginFailure(const absl::Status& why);

  // Abandons the message and begins `generation` with its first frame (kRenewalType).
  void Renew(uint64_t generation);

 private:
  void NextFrame();
  void FrameWritten();
  // The pieces of this frame that are still to be written, in order. Returns their number.
  size_t Pieces(std::array<ConstBytes, 3>* pieces) const;
  size_t tail_bytes() const { return FrameTailSize(payload_); }

  Stream* const stream_;
  uint64_t generation_;
  const bool checksum_;
  uint64_t sequence_ = 0;

  bool open_ = false;
  uint16_t type_ = 0;
  ConstBytes message_;
  size_t framed_ = 0;   // bytes of the message in earlier frames
  size_t payload_ = 0;  // bytes of it in this frame
  size_t at_ = 0;       // bytes of this frame that have been written
  bool zeros_ = false;  // the rest of this frame's payload is zeros
  FrameHeaderBytes header_ = {};
  FrameTailBytes tail_ = {};
  std::string failure_;  // a failure's bytes, or one that waits until the zeros are written
  bool failure_waits_ = false;
  bool renewal_waits_ = false;  // until the zeros are written
};

}  // namespace muster::net::transport
