// Streams over connected sockets: TCP and unix.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/read_buffer.h"
#include "muster/net/transport/stream.h"
#include "muster/process/descriptor.h"

namespace muster::net::transport {

struct SocketOptions {
  // The kernel's buffers, per direction; 0 keeps the kernel's default, which for unix sockets is
  // too small for large messages.
  int buffer_bytes = 0;
  // For TCP: a link over which nothing arrived for this long is broken (link_watch.h); 0: the
  // default.
  int stall_seconds = 0;
};

// Takes over a connected stream socket of either family and makes it non-blocking. Bytes are read
// in pieces of up to 256 KiB into the stream's buffer, or bypass it (Read).
class SocketStream : public Stream {
 public:
  // Sets "no delay" for TCP. INVALID_ARGUMENT if it is not a stream socket.
  static absl::StatusOr<std::unique_ptr<SocketStream>> Create(process::Descriptor socket,
                                                              std::string peer,
                                                              const SocketOptions& options = {});

  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override;
  absl::StatusOr<ConstBytes> Peek() override;
  void Consume(size_t n) override;
  absl::StatusOr<size_t> Read(MutableBytes to) override;
  PollWish Arm(bool read, bool write) override;
  void Disarm() override {}
  void Close() override;
  absl::Status SetTlsKey(const TlsKey& key) override;
  absl::StatusOr<bool> WriteTlsRecord(uint8_t type, ConstBytes record, double seconds) override;

 private:
  SocketStream(process::Descriptor socket, std::string peer, bool is_tcp);

  // Fills `direct` first and then `room`, which is the buffer's. Returns how many bytes arrived.
  absl::StatusOr<size_t> Receive(MutableBytes direct, MutableBytes room);
  absl::Status Closed() const;

  process::Descriptor socket_;
  const bool is_tcp_;
  ReadBuffer buffer_;
  size_t shown_ = 0;  // what Peek showed since the last Consume
};

}  // namespace muster::net::transport
