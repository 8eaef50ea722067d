// Service: a coordinator with its threads and its HTTP server for agents and people (docs/run.md).
//
//   POST /v1/agent   a report; answered with orders, at once when they differ from those that the
//                    agent has seen, else when they do or after a part of the lease
//   GET  /v1/status  Coordinator::Describe()
//   POST /v1/stop    {"why": "..."}: the job ends
//   POST /v1/suspend {"suspend": true}: its tasks end; false: they start again
//
// Every request must carry the job's token.
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

  // For programs on this machine.
  std::string url() const { return LocalUrl(place_, port()); }
  int port() const { return server_->port(); }

  // Starts the coordinator; called once. Until then, requests are answered UNAVAILABLE.
  void Run(std::unique_ptr<Coordinator> coordinator);

  // Ends threads and server; Wake() does nothing from then on. Running tasks continue.
  void Stop();

  // Call it when something may have changed. Any thread.
  void Wake();
  void Cancel(const std::string& why);  // after Run()
  void SetPaused(bool paused);          // the same; Coordinator::SetPaused

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
  std::mutex mutex_;               // used with a condition variable, which needs std::mutex
  std::condition_variable_any work_;
  std::unique_ptr<Coordinator> coordinator_;  // guarded by mutex_, as all below
  std::map<IncarnationId, Waiter> waiters_;   // one per agent: its last request counts
  bool dirty_ = true;
  bool passed_ = false;  // at least once
  bool finished_ = false;
  std::string complaint_;  // the last error, reported once

  std::unique_ptr<net::HttpServer> server_;
  std::jthread loop_;  // last: it ends first
};

}  // namespace muster::control
