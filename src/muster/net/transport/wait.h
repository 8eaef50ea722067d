// Sleeping until a Stream is ready, the deadline passes or somebody interrupts.
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

// OK: ask the streams again (there need not be more). DEADLINE_EXCEEDED without details, which the
// caller knows; or the interrupt's status. At most 4 streams, none twice.
absl::Status WaitFor(std::span<const Awaited> awaited, process::Deadline deadline,
                     const Interrupt& interrupt);

// The same for one descriptor and poll()'s events.
absl::Status WaitForDescriptor(int fd, short events, process::Deadline deadline,
                               const Interrupt& interrupt);

// The short while in which one asks again before sleeping.
class Spin {
 public:
  explicit Spin(int micros) : budget_(std::chrono::microseconds(micros)) {}

  // Something moved: the while begins anew.
  void Reset() { pauses_ = 0; }
  // False: it is over, sleep. True: some nanoseconds have passed. Lets others have the core after
  // the first of them.
  bool Again();

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::duration budget_;
  int pauses_ = 0;  // since something moved
  Clock::time_point since_;
};

}  // namespace muster::net::transport
