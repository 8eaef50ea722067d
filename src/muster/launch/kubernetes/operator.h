// Operator: reflectors, work queue, controller and leader election together: `muster operator`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/kubernetes/job_controller.h"
#include "muster/launch/kubernetes/leader.h"
#include "muster/launch/kubernetes/work_queue.h"
#include "muster/net/http/open_server.h"

namespace muster::launch::kubernetes {

struct OperatorOptions {
  std::string name_space = {};      // "": jobs of all namespaces
  std::string own_name_space = {};  // where its Lease is
  std::string identity = {};        // "": host name, process and start
  std::string cluster_domain = {};  // "cluster.local": for whole names in TF_CONFIG
  int workers = 8;                  // passes at a time
  std::string health_address = "0.0.0.0";
  int health_port = 8080;     // less than 0: no /healthz and /metrics
  LeaderOptions leader = {};  // but for its namespace and identity
};

// One owner thread.
class Operator {
 public:
  // Checks that the API server answers and has Muster's CustomResourceDefinition, and listens for
  // /healthz and /metrics. FAILED_PRECONDITION says what is missing and the command that mends it.
  static absl::StatusOr<std::unique_ptr<Operator>> New(KubeAccess access, OperatorOptions options);
  ~Operator();

  // Works until Stop() is called: OK; or until the lease is lost: UNAVAILABLE.
  absl::Status Run();
  void Stop();  // any thread

  int health_port() const { return server_ == nullptr ? -1 : server_->port(); }

 private:
  Operator(std::unique_ptr<KubeClient> client, OperatorOptions options);
  absl::Status CheckDefinition();
  absl::Status Listen();
  void Work();
  net::HttpResponse Health() const;
  net::HttpResponse Metrics() const;

  const OperatorOptions options_;
  const SystemClock clock_;
  const std::unique_ptr<KubeClient> client_;
  WorkQueue queue_;
  JobCache cache_;
  JobMetrics metrics_;
  Reflector jobs_, pods_, services_;
  Leader leader_;
  JobController controller_;
  std::atomic<uint64_t> passes_ = 0, failures_ = 0;
  std::unique_ptr<net::OpenServer> server_;
};

}  // namespace muster::launch::kubernetes
