// A message as frames into a Stream, as far as it takes them.
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
  FrameWriter(Stream* stream, uint64_t epoch, bool checksum)
      : stream_(stream), epoch_(epoch), checksum_(checksum) {}

  // `message` must stay until done() or Abandon(). The one before is done.
  void Begin(uint16_t type, ConstBytes message);
  // Writes what goes now, at most about one frame. True: something went. No more than done().
  absl::StatusOr<bool> Pump();
  bool done() const { return !open_; }
  // Whether a byte of the message has gone.
  bool begun() const { return framed_ > 0 || at_ > 0; }
  size_t payload_sent() const;

  // The message will not be finished: its memory is used no more. If a frame has gone in part, what
  // is missing will go as zeros before the next message, and its trailer says so. One byte of what
  // was offered before may go instead (stream.h): a reader looks at nothing in such a frame but
  // that it was given up.
  void Abandon();
  // Begin for a status, as kFailureType; after Abandon.
  void BeginFailure(const absl::Status& why);

  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  void NextFrame();
  void FrameWritten();
  // What of this frame is still to go, in order; how many pieces.
  size_t Pieces(std::array<ConstBytes, 3>* pieces) const;
  size_t tail_bytes() const { return FrameTailSize(payload_); }

  Stream* const stream_;
  uint64_t epoch_;
  const bool checksum_;
  uint64_t sequence_ = 0;

  bool open_ = false;
  uint16_t type_ = 0;
  ConstBytes message_;
  size_t framed_ = 0;   // bytes of the message in frames before this one
  size_t payload_ = 0;  // bytes of it in this frame
  size_t at_ = 0;       // bytes of this frame that have gone
  bool zeros_ = false;  // the rest of this frame's payload is zeros
  FrameHeaderBytes header_ = {};
  FrameTailBytes tail_ = {};
  std::string failure_;  // a failure's bytes, or one that waits for zeros to have gone
  bool failure_waits_ = false;
};

}  // namespace muster::net::transport
