// ClusterReplicas: the replicas of a job, each in its own process, which find each other by the
// addresses in TF_CONFIG.
//
// Every task listens on its own address. The chief hosts the membership there (membership/host.h),
// so that a job needs nothing but its tasks. For an epoch each replica connects to all replicas of
// lower rank. Every connection requires the job's key.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/job/job_spec.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/tls.h"
#include "muster/process/descriptor.h"
#include "muster/train/allreduce/replicas.h"
#include "muster/train/loop/training_watch.h"

namespace muster::train {

struct ClusterSpec {
  std::string job = {};
  job::TaskId self = {};
  int64_t incarnation = 0;
  // A task that trains, and the address on which it listens.
  struct Task {
    job::TaskId id = {};
    net::transport::Address address = {};
  };
  std::vector<Task> tasks = {};  // all replicas; the first is the chief
  net::transport::Protection protection = {};
  int min_replicas = 0;        // as many suffice to begin and to continue; 0: all are needed
  bool evaluator = false;      // the job also has evaluator-0
  std::string agreement = {};  // what must be the same in all tasks (membership/view.h)
  double lease_seconds = 10;
  double rendezvous_seconds = 300;
  int stall_seconds = 0;  // of connections between replicas (net/transport/link_watch.h)
  // A socket that is bound to this task's address, listening or not. If empty, JoinCluster binds
  // one.
  process::Descriptor listening = {};
  const std::atomic<bool>* stop = nullptr;  // true ends waits for others; null: nothing does
  // True, with `stop`: this task alone must end, the others continue or wait for its replacement.
  // Null: a stop is meant for all tasks.
  const std::atomic<bool>* leaving = nullptr;
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// INVALID_ARGUMENT if spec.self is not among spec.tasks; ALREADY_EXISTS if its address is taken.
// `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<Replicas>> JoinCluster(ClusterSpec spec, const net::Token& key,
                                                      const Clock& clock);

// For the evaluator: follows the training of spec.tasks.front(), the chief; does not listen. The
// watch fails if the chief was away for rendezvous_seconds, or with the reason why training has
// failed.
absl::StatusOr<std::unique_ptr<TrainingWatch>> WatchCluster(ClusterSpec spec,
                                                            const net::Token& key);

}  // namespace muster::train
