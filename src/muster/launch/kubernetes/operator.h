// Operator: reflectors, work queue, controller and leader election together: `muster operator`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/allowed_writes.h"
#include "muster/launch/kubernetes/job_controller.h"
#include "muster/launch/kubernetes/leader.h"
#include "muster/launch/kubernetes/other_operators.h"
#include "muster/launch/kubernetes/own_namespaces.h"
#include "muster/launch/kubernetes/pod_groups.h"
#include "muster/launch/kubernetes/pod_looks.h"
#include "muster/launch/kubernetes/work_queue.h"
#include "muster/net/http/open_server.h"

namespace muster::launch::kubernetes {

struct OperatorOptions {
  std::string name_space = {};      // "": jobs of all namespaces
  std::string own_name_space = {};  // where its Lease is
  std::string identity = {};        // "": host name, process and start
  std::string cluster_domain = {};  // "cluster.local": for whole names in TF_CONFIG
  std::string gang_scheduler = {};  // "volcano", or another with scheduler-plugins; "": none
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

  // Works until Stop() is called, and then gives its lease back: OK. While it does not have the
  // lease it changes nothing. PERMISSION_DENIED: it may not use the lease. FAILED_PRECONDITION:
  // Kubeflow's operator, which was not there at the start, has come, and a new start must decide
  // what is whose.
  absl::Status Run();
  void Stop();  // any thread

  // Gives back what only a burst of work needs; any thread.
  void Rest() {
    client_->CloseIdle(kRestingConnections);
    cache_.Pack();
  }
  // How many looks at jobs it has begun; any thread.
  uint64_t passes() const { return passes_; }
  int health_port() const { return server_ == nullptr ? -1 : server_->port(); }

 private:
  static constexpr size_t kRestingConnections = 2;
  Operator(std::unique_ptr<KubeClient> client, std::unique_ptr<KubeClient> lease_client,
           OperatorOptions options);
  std::vector<Reflector*> GetReflectors();
  absl::Status CheckDefinition();
  absl::Status CheckNeighbour();
  // Makes the jobs of a namespace due.
  void AddJobs(const std::string& name_space);
  void WarnOfNamespace();
  absl::Status Listen();
  void Work();
  // Says when a reflector cannot follow the API server, and when it can again.
  void WatchReflectors();
  // Stops when Kubeflow's operator has come.
  void WatchNeighbour();
  net::HttpResponse Health() const;
  net::HttpResponse Metrics() const;

  const OperatorOptions options_;
  const SystemClock clock_;
  const std::unique_ptr<KubeClient> client_;
  // Each attempt is one call, so that the loss of the lease is seen in time.
  const std::unique_ptr<KubeClient> lease_client_;
  AllowedWrites writes_;
  WorkQueue queue_;
  JobCache cache_;
  JobMetrics metrics_;
  Reflector jobs_, pods_, services_;
  PodLooks looks_;
  PodGroups groups_;
  Reflector group_reflector_;  // runs only with a gang scheduler
  OwnNamespaces namespaces_;
  Reflector namespace_reflector_;  // runs only beside Kubeflow's operator
  Leader leader_;
  OtherOperators others_;
  JobController controller_;
  std::atomic<uint64_t> passes_ = 0, failures_ = 0;
  std::string kubeflow_ = {};  // where Kubeflow's operator was found at the start; "": nowhere
  Mutex mutex_;
  std::string newcomer_ ABSL_GUARDED_BY(mutex_) = {};  // where it was found since
  std::vector<Reflector*> reflectors_ = {};            // those that run
  std::unique_ptr<net::OpenServer> server_;
};

}  // namespace muster::launch::kubernetes
