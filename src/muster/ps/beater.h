// Beater: says to the lead every second that its replica lives, while that computes, saves or
// evaluates: for a bound on staleness, which must not wait for the dead.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "muster/base/status.h"
#include "muster/ps/line.h"

namespace muster::ps {

// Over a connection of its own; where the lead cannot be reached it tries again. Ends at once.
class Beater {
 public:
  static absl::StatusOr<std::unique_ptr<Beater>> Start(SocketLineSpec spec, int replica);
  ~Beater();
  Beater(const Beater&) = delete;
  Beater& operator=(const Beater&) = delete;

 private:
  Beater(DialLine dial, int replica, std::shared_ptr<net::transport::Interrupt> interrupt)
      : dial_(std::move(dial)), replica_(replica), interrupt_(std::move(interrupt)) {}
  void Run(const std::stop_token& stop);
  absl::Status Beat(Line& line) const;

  const DialLine dial_;
  const int replica_;
  const std::shared_ptr<net::transport::Interrupt> interrupt_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace muster::ps
