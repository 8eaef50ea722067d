// Sleeps until a Stream is ready, the deadline passes or an Interrupt is set.
#pragma once

#include <chrono>
#include <span>

#include "muster/base/status.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/stream.h"
#include "muster/process/deadline.h"

namespace muster::net::transport {

struct Awaited {
  Stream* stream = nullptr;
  bool read = false, write = false;
};

// OK: try the streams again (there need not be more data). DEADLINE_EXCEEDED without details, which
// the caller knows; UNAVAILABLE if the network to the other end of a stream is gone (link_watch.h);
// or the interrupt's status. At most 4 streams, none twice.
absl::Status WaitFor(std::span<const Awaited> awaited, process::Deadline deadline,
                     const Interrupt& interrupt);

// Like WaitFor, for one descriptor and poll()'s events.
absl::Status WaitForDescriptor(int fd, short events, process::Deadline deadline,
                               const Interrupt& interrupt);

// The short time for which a caller polls before sleeping.
class Spin {
 public:
  explicit Spin(int micros) : budget_(std::chrono::microseconds(micros)) {}

  // Call it when something moved: the time starts again.
  void Reset() { pauses_ = 0; }
  // Returns false when the time is over: then sleep. Returns true when some nanoseconds have
  // passed. Yields the core to other threads after the first of them.
  bool Again();

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::duration budget_;
  int pauses_ = 0;  // since something moved
  Clock::time_point since_;
};

}  // namespace muster::net::transport
