// Service: a coordinator with its threads, and HTTP for agents and people (docs/run.md).
//
//   POST /v1/agent   a report; answered with orders, at once when they differ from those that the
//                    agent has seen, else when they do or after a part of the lease
//   GET  /v1/status  Coordinator::Describe()
//   POST /v1/stop    {"why": "..."}: the job ends
//   POST /v1/suspend {"suspend": true}: its tasks end; false: they start again
//
// Every request shows the job's token.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/control/coordinator.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_access.h"
#include "muster/control/job_folder.h"
#include "muster/net/http_server.h"
#include "muster/process/descriptor.h"

namespace muster::control {

class Service {
 public:
  // Errors as net::HttpServer::Start, and of the job's token and certificates.
  static absl::StatusOr<std::unique_ptr<Service>> Listen(const JobFolder& folder,
                                                         const ListenPlace& place);
  ~Service();  // stops
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // For programs of this machine.
  std::string url() const { return LocalUrl(place_, port()); }
  int port() const { return server_->port(); }

  // Begins to run the coordinator, once. Before, requests are answered UNAVAILABLE.
  void Run(std::unique_ptr<Coordinator> coordinator);

  // Ends threads and server; Wake() does nothing from then on. What runs goes on running.
  void Stop();

  // Something may have changed. Any thread.
  void Wake();
  void Cancel(const std::string& why);  // after Run()

  // Readable after each pass, until ClearChange().
  int change_fd() const { return change_fd_.get(); }
  void ClearChange() const;
  bool finished();
  Json Describe();

 private:
  struct Waiter {
    int64_t seen = 0;
    net::HttpReply reply;
  };

  explicit Service(ListenPlace place);
  std::vector<net::HttpRoute> Routes();
  void TakeStop(const net::HttpRequest& request, const net::HttpReply& reply);
  void TakeSuspend(const net::HttpRequest& request, const net::HttpReply& reply);
  void TakeReport(const net::HttpRequest& request, net::HttpReply reply);
  void Loop(const std::stop_token& stop);
  double PassOnce();
  void AnswerWaiters();

  const ListenPlace place_;
  process::Descriptor change_fd_;  // an eventfd
  std::mutex mutex_;               // with a condition variable, which wants this one
  std::condition_variable_any work_;
  std::unique_ptr<Coordinator> coordinator_;  // and all below: under mutex_
  std::map<IncarnationId, Waiter> waiters_;   // an agent has one at a time: its last counts
  bool dirty_ = true;
  bool passed_ = false;  // once at least
  bool finished_ = false;
  std::string complaint_;  // the last error, said once

  std::unique_ptr<net::HttpServer> server_;
  std::jthread loop_;  // last: it ends first
};

}  // namespace muster::control
