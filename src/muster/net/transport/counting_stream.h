// CountingStream: for tests, a Stream that counts what its owner writes to another one, as frames
// (frame.h), messages and bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "muster/net/transport/frame.h"

namespace muster::net::transport {

// What one end has sent. One owner thread.
struct Traffic {
  int64_t messages = 0, frames = 0;
  int64_t bytes = 0;  // with the frames' headers, padding and trailers
};

// The bytes that a message of this size takes on a stream.
inline int64_t FramedBytes(size_t message) {
  int64_t bytes = 0;
  do {
    const size_t payload = std::min(message, kMaxFramePayload);
    bytes += static_cast<int64_t>(kFrameHeaderBytes + payload + FrameTailSize(payload));
    message -= payload;
  } while (message > 0);
  return bytes;
}

class CountingStream : public Stream {
 public:
  // Adds to `traffic`, which must outlive the stream.
  CountingStream(std::unique_ptr<Stream> stream, Traffic* traffic)
      : Stream(stream->peer()), stream_(std::move(stream)), traffic_(*traffic) {}

  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override {
    absl::StatusOr<size_t> written = stream_->Write(pieces);
    size_t left = written.value_or(0);
    traffic_.bytes += static_cast<int64_t>(left);
    for (const ConstBytes piece : pieces) {
      const size_t size = std::min(left, piece.size());
      Count(piece.first(size));
      left -= size;
    }
    return written;
  }
  absl::StatusOr<ConstBytes> Peek() override { return stream_->Peek(); }
  void Consume(size_t n) override { stream_->Consume(n); }
  absl::StatusOr<size_t> Read(MutableBytes to) override { return stream_->Read(to); }
  PollWish Arm(bool read, bool write) override { return stream_->Arm(read, write); }
  void Disarm() override { stream_->Disarm(); }
  void Close() override { stream_->Close(); }

 private:
  void Count(ConstBytes bytes) {
    while (!bytes.empty()) {
      if (rest_ > 0) {  // of the payload, padding and trailer
        const size_t size = std::min(rest_, bytes.size());
        rest_ -= size;
        bytes = bytes.subspan(size);
        continue;
      }
      const size_t size = std::min(kFrameHeaderBytes - filled_, bytes.size());
      std::memcpy(header_.data() + filled_, bytes.data(), size);
      filled_ += size;
      bytes = bytes.subspan(size);
      if (filled_ < kFrameHeaderBytes) return;
      const FrameHeader header = DecodeFrameHeader(header_).value();
      filled_ = 0;
      rest_ = header.payload_bytes + FrameTailSize(header.payload_bytes);
      ++traffic_.frames;
      if ((header.flags & kFrameMore) == 0) ++traffic_.messages;
    }
  }

  const std::unique_ptr<Stream> stream_;
  Traffic& traffic_;
  FrameHeaderBytes header_ = {};
  size_t filled_ = 0;  // of header_
  size_t rest_ = 0;
};

}  // namespace muster::net::transport
