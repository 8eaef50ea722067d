// AgentLink: an agent's connection to its coordinator. It sends the agent's report, at once when
// the report changes, and holds the newest orders.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "muster/control/protocol.h"
#include "muster/net/http/client.h"
#include "muster/process/descriptor.h"

namespace muster::control {

// One owner thread. The link's own thread sends long-poll requests to the coordinator.
class AgentLink {
 public:
  // Called from either thread when a report got no answer. If the coordinator is no longer at
  // `url`, returns a client of it and sets `url`; returns null if it has not moved.
  using Finder = std::function<std::unique_ptr<net::HttpClient>(std::string& url)>;

  // Takes two clients of the coordinator. `report` names the task; `lease_seconds` is the lease
  // until the coordinator sends another. Nothing is sent before the first Tell(). Without `find`
  // the coordinator never moves.
  AgentLink(std::unique_ptr<net::HttpClient> poll_client,
            std::unique_ptr<net::HttpClient> urgent_client, AgentReport report,
            double lease_seconds, Finder find = {});
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Replaces the report from now on. `urgent`: sends it before returning, if the coordinator can be
  // reached within two seconds.
  void Tell(const AgentReport& report, bool urgent);
  AgentOrders orders();
  // Seconds since the last report that the coordinator answered, less the time for which it held
  // the answer back. The result is never less than the time since it sent the answer.
  double silent_seconds();
  double lease_seconds();
  // Why the last report got no answer; "" if it got one.
  std::string last_error();
  // Becomes readable when orders() has changed, and stays readable until ClearNews().
  int news_fd() const { return news_fd_.get(); }
  void ClearNews() const;

 private:
  void Loop(const std::stop_token& stop);
  struct Client {
    std::shared_ptr<net::HttpClient> client;  // guarded by mutex_
    std::string url;                          // where it was last found; used by its thread alone
  };
  bool Exchange(Client& client, bool poll, double timeout_seconds);
  void Find(Client& client);

  const process::Descriptor news_fd_;  // an eventfd
  std::mutex mutex_;
  std::condition_variable_any pause_;
  AgentReport report_;  // guarded by mutex_, as all below
  AgentOrders orders_;
  int64_t sequence_ = 0;
  double lease_seconds_;
  double heard_at_;
  std::string last_error_;

  const Finder find_;
  Client poll_client_;    // used by the thread
  Client urgent_client_;  // used by the owner
  bool ending_ = false;
  std::jthread loop_;  // last member, so that it ends first
};

}  // namespace muster::control
