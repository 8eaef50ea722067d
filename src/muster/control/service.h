// Service: a coordinator with its threads and its HTTP server for agents and people (docs/run.md).
//
//   POST /v1/agent   a report; answered with orders, at once when they differ from those that the
//                    agent has seen, else once they differ or after a part of the lease
//   GET  /v1/status  Coordinator::Describe()
//   POST /v1/stop    {"why": "..."}: the job ends
//   POST /v1/suspend {"suspend": true}: its tasks end; false: they start again
//
// Every request must carry the job's token, or, to read, the browser's key
// (net/http/browser_access.h). On a port of their own, if there is one, these are open to everybody
// (net/http/open_server.h):
//
//   GET  /healthz    200 once the coordinator decides and can write its journal, else 503
//   GET  /metrics    the job's numbers for Prometheus (job_metrics.h)
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/control/coordinator.h"
#include "muster/control/incarnation.h"
#include "muster/control/job_access.h"
#include "muster/control/job_folder.h"
#include "muster/net/http/open_server.h"
#include "muster/net/http/server.h"
#include "muster/process/descriptor.h"

namespace muster::control {

// A route that a launcher needs. Its handler is called under the service's lock, so never at the
// same time as a pass or as a call of the launcher by the coordinator; a pass follows each call.
// Before Run() the request is answered UNAVAILABLE.
struct ServiceRoute {
  std::string method = {};
  std::string path = {};
  std::function<absl::StatusOr<Json>(const Json& body)> handle = {};
};

struct ServiceOptions {
  std::vector<ServiceRoute> routes = {};
  std::optional<int> open_port = {};  // 0: any
};

class Service {
 public:
  // Errors are those of net::HttpServer::Start and net::OpenServer::Start, and of reading the job's
  // token and certificates.
  static absl::StatusOr<std::unique_ptr<Service>> Listen(const JobFolder& folder,
                                                         const ListenPlace& place,
                                                         const ServiceOptions& options = {});
  ~Service();  // calls Stop()
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // For programs on this machine.
  std::string url() const { return LocalUrl(place_, port()); }
  int port() const { return server_->port(); }
  int open_port() const { return open_ == nullptr ? 0 : open_->port(); }  // 0: none
  // `path` as a URL for a browser of this machine. A secret.
  std::string BrowserUrl(std::string_view path) const { return server_->BrowserUrl(path); }

  // Starts the coordinator; called once. Until then, requests are answered UNAVAILABLE.
  void Run(std::unique_ptr<Coordinator> coordinator);

  // Ends threads and server; Wake() does nothing from then on. Running tasks continue.
  void Stop();

  // To be called when something may have changed. Any thread.
  void Wake();
  // Calls `work` under the service's lock, like a ServiceRoute's handler; a pass follows. To be
  // called after Run(). Any thread.
  void Within(const std::function<void()>& work);
  void Cancel(const std::string& why);  // after Run()
  void SetPaused(bool paused);          // the same; Coordinator::SetPaused

  // Becomes readable after each pass, and stays readable until ClearChange().
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
  std::vector<net::HttpRoute> Routes(const std::vector<ServiceRoute>& more);
  net::HttpResponse Health();
  net::HttpResponse Metrics();
  void HandleRoute(const ServiceRoute& route, const net::HttpRequest& request,
                   const net::HttpReply& reply);
  void HandleStop(const net::HttpRequest& request, const net::HttpReply& reply);
  void HandleSuspend(const net::HttpRequest& request, const net::HttpReply& reply);
  void HandleReport(const net::HttpRequest& request, net::HttpReply reply);
  void Refuse(const AgentReport& report, const net::HttpReply& reply);
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
  std::unique_ptr<net::OpenServer> open_;  // null: none
  std::jthread loop_;                      // last member, so that it ends first
};

}  // namespace muster::control
