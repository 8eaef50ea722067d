// A Stream through memory that both processes map: for peers on one machine.
//
// Over a connected unix socket the dialing side hands over a memfd with two rings (shared_ring.h).
// From then on the socket carries only doorbells, bytes without meaning that wake a sleeping peer,
// and its hang-up shows at once that a peer was killed. The memory is sealed, so that neither side
// can shrink it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "muster/base/status.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/shared_ring.h"
#include "muster/net/transport/stream.h"
#include "muster/process/deadline.h"
#include "muster/process/descriptor.h"

namespace muster::net::transport {

struct SharedMemoryOptions {
  size_t ring_bytes = size_t{512} << 10;  // each way; a power of two, 64 KiB to 64 MiB
};

class SharedMemoryStream : public Stream {
 public:
  // The dialing side: makes the memory and sends it. RESOURCE_EXHAUSTED if there is no memory.
  static absl::StatusOr<std::unique_ptr<SharedMemoryStream>> Offer(
      process::Descriptor socket, std::string peer, const SharedMemoryOptions& options,
      process::Deadline deadline, const Interrupt& interrupt);
  // The listening side. DATA_LOSS if it does not receive such memory.
  static absl::StatusOr<std::unique_ptr<SharedMemoryStream>> Accept(process::Descriptor socket,
                                                                    std::string peer,
                                                                    process::Deadline deadline,
                                                                    const Interrupt& interrupt);
  ~SharedMemoryStream() override;

  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override;
  absl::StatusOr<ConstBytes> Peek() override;
  void Consume(size_t n) override;
  PollWish Arm(bool read, bool write) override;
  void Disarm() override;
  void Close() override;

 private:
  class Memory;

  SharedMemoryStream(process::Descriptor socket, std::string peer, std::unique_ptr<Memory> memory,
                     int side);
  absl::Status Gone() const;
  void RingBell();

  process::Descriptor socket_;
  const std::unique_ptr<Memory> memory_;
  RingWriter writer_;
  RingReader reader_;
  size_t shown_ = 0;    // by Peek since the last Consume
  bool bell_ = false;   // to be rung
  bool slept_ = false;  // since the last Disarm
  bool gone_ = false;   // the socket has hung up
};

}  // namespace muster::net::transport
