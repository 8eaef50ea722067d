// An agent's connection to its coordinator: sends the agent's report, at once when it changes, and
// holds the newest orders.
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

// One owner thread. The link's own thread sends long-poll requests to the coordinator.
class AgentLink {
 public:
  // Takes two clients of the coordinator. `report` names the task; `lease_seconds` holds until the
  // coordinator sends another. Nothing is sent before the first Tell().
  AgentLink(std::unique_ptr<net::HttpClient> poll_client,
            std::unique_ptr<net::HttpClient> urgent_client, AgentReport report,
            double lease_seconds);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Replaces the report from now on. `urgent`: sends it before returning, if the coordinator can be
  // reached within two seconds.
  void Tell(const AgentReport& report, bool urgent);
  AgentOrders orders();
  // Seconds since the coordinator last answered.
  double silent_seconds();
  double lease_seconds();
  // Why the last report got no answer; "" if it got one.
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
  AgentReport report_;  // guarded by mutex_, as all below
  AgentOrders orders_;
  int64_t sequence_ = 0;
  double lease_seconds_;
  double heard_at_;
  std::string last_error_;

  const std::unique_ptr<net::HttpClient> poll_client_;    // used by the thread
  const std::unique_ptr<net::HttpClient> urgent_client_;  // used by the owner
  std::jthread loop_;                                     // last: it ends first
};

}  // namespace muster::control
