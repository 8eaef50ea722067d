// An agent's conversation with its coordinator: what it knows is told, at once when it changes;
// what it is to do is there.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/control/protocol.h"
#include "muster/net/http_client.h"
#include "muster/process/descriptor.h"

namespace muster::control {

// One owner thread; it has a thread of its own, whose requests wait for news at the coordinator.
class AgentLink {
 public:
  // Two clients of the coordinator. `report` names the task; `lease_seconds` holds until the
  // coordinator says another. Nothing is told before the first Tell().
  AgentLink(std::unique_ptr<net::HttpClient> poll_client,
            std::unique_ptr<net::HttpClient> urgent_client, AgentReport report,
            double lease_seconds);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Replaces what is told from now on; `urgent`: tells it before it returns, if the coordinator
  // can be reached within two seconds.
  void Tell(const AgentReport& report, bool urgent);
  AgentOrders orders();
  // Since the coordinator was heard.
  double silent_seconds();
  double lease_seconds();
  // Why the last report was not answered; "": it was.
  std::string last_error();
  // Readable when orders() has news, until ClearNews().
  int news_fd() const { return news_fd_.get(); }
  void ClearNews() const;

 private:
  void Loop(const std::stop_token& stop);
  bool Exchange(net::HttpClient& client, bool poll, double timeout_seconds);

  const process::Descriptor news_fd_;  // an eventfd
  std::mutex mutex_;
  std::condition_variable_any pause_;
  AgentReport report_;  // and all below: under mutex_
  AgentOrders orders_;
  int64_t sequence_ = 0;
  double lease_seconds_;
  double heard_at_;
  std::string last_error_;

  const std::unique_ptr<net::HttpClient> poll_client_;    // of the thread
  const std::unique_ptr<net::HttpClient> urgent_client_;  // of the owner
  std::jthread loop_;                                     // last: it ends first
};

}  // namespace muster::control
