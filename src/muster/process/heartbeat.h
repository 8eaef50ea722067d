// A heartbeat that a program sends to its starter, so that a stopped or frozen program can
// be told from one that works for long. It shows no progress: a separate thread sends it.
//
// The starter gives the program a pipe and names it in MUSTER_PULSE ("DESCRIPTOR:PID OF THE
// STARTER"). A program that may not send beats is watched only from its first beat.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "muster/base/status.h"
#include "muster/process/child.h"
#include "muster/process/descriptor.h"

namespace muster::process {

// The program's side: sends beats until it is destroyed, which ends the watch.
class Heartbeat {
 public:
  // Null if the starter of this very process did not ask for one.
  static std::unique_ptr<Heartbeat> StartIfAsked();
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  explicit Heartbeat(int fd);
  void Beat(const std::stop_token& stop) const;

  const int fd_;
  std::jthread thread_;
};

// The starter's side. One owner thread.
class HeartbeatWatch {
 public:
  // Adds to `spec` what the program needs. Call CloseWriter once the program has started. `beats`:
  // the program is known to send beats, so that their absence from the start counts as silence.
  static absl::StatusOr<HeartbeatWatch> Create(ChildSpec* spec, bool beats);
  void CloseWriter() { writer_.Reset(); }

  // Call it repeatedly. Returns the seconds without a beat, 0 while none is expected. Time in which
  // it was not called does not count, since the starter itself did not run then.
  double Look(int64_t now_nanos);

 private:
  Descriptor reader_, writer_;
  bool beats_ = false;
  double silent_seconds_ = 0;
  int64_t looked_nanos_ = 0;
};

}  // namespace muster::process
