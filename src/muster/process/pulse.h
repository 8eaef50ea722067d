// A pulse: what a program gives to whoever looks after it, so that one that was stopped or frozen
// is told from one that works for long. It says nothing of progress: a thread of its own beats.
//
// The starter gives the program a pipe and names it in MUSTER_PULSE ("DESCRIPTOR:PID OF THE
// STARTER"). A program that is not known to beat is watched from its first beat.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "muster/base/status.h"
#include "muster/process/child.h"
#include "muster/process/descriptor.h"

namespace muster::process {

// The program's side: beats until it is destroyed, which ends the watch.
class Pulse {
 public:
  // Null where the starter of this very process did not ask for one.
  static std::unique_ptr<Pulse> StartIfAsked();
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  explicit Pulse(int fd);
  void Beat(const std::stop_token& stop) const;

  const int fd_;
  std::jthread thread_;
};

// The starter's side. One owner thread.
class PulseWatch {
 public:
  // Adds to `spec` what the program needs. CloseWriter when it has started. `beats`: it is known to
  // beat, and silent when it does not from the start.
  static absl::StatusOr<PulseWatch> Create(ChildSpec* spec, bool beats);
  void CloseWriter() { writer_.Reset(); }

  // To be called again and again; seconds without a beat, 0 while none is waited for. Time in which
  // it was not called does not count: then the starter itself did not run.
  double Look(int64_t now_nanos);

 private:
  Descriptor reader_, writer_;
  bool beats_ = false;
  double silent_seconds_ = 0;
  int64_t looked_nanos_ = 0;
};

}  // namespace muster::process
