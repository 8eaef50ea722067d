// HeartbeatSender: sends the lead a heartbeat every second while its replica computes, saves or
// evaluates. The bound on staleness needs these heartbeats, since it must not wait for lost
// replicas.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "muster/base/status.h"
#include "muster/ps/client/server_connection.h"

namespace muster::ps {

// Uses its own connection; if the lead cannot be reached, it retries. The destructor interrupts a
// send or wait, so that it returns at once.
class HeartbeatSender {
 public:
  static absl::StatusOr<std::unique_ptr<HeartbeatSender>> Start(ServerConnectionSpec spec,
                                                                int replica);
  ~HeartbeatSender();
  HeartbeatSender(const HeartbeatSender&) = delete;
  HeartbeatSender& operator=(const HeartbeatSender&) = delete;

 private:
  HeartbeatSender(ServerDialer dial, int replica,
                  std::shared_ptr<net::transport::Interrupt> interrupt)
      : dial_(std::move(dial)), replica_(replica), interrupt_(std::move(interrupt)) {}
  void Run(const std::stop_token& stop);
  absl::Status Beat(ServerConnection& connection) const;

  const ServerDialer dial_;
  const int replica_;
  const std::shared_ptr<net::transport::Interrupt> interrupt_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace muster::ps
