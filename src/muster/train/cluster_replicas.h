// ClusterReplicas: the replicas of a job, each a process of its own, found by TF_CONFIG's
// addresses.
//
// Every task listens on its own address. The chief hosts the membership there (membership/host.h),
// so that a job needs nothing but its tasks; for an epoch each replica connects to all of lower
// rank. All of it asks for the job's key.
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
#include "muster/train/replicas.h"
#include "muster/train/training_watch.h"

namespace muster::train {

struct ClusterSpec {
  std::string job = {};
  job::TaskId self = {};
  int64_t incarnation = 0;
  // Of all replicas, and where each listens; the first is the chief.
  struct Task {
    job::TaskId id = {};
    net::transport::Address address = {};
  };
  std::vector<Task> tasks = {};
  net::transport::Protection protection = {};
  int min_replicas = 0;        // so many begin, and go on, without the others; 0: only all
  bool evaluator = false;      // there is an evaluator-0 too
  std::string agreement = {};  // what all must have the same (membership/view.h)
  double lease_seconds = 10;
  double rendezvous_seconds = 300;
  // A socket that is bound to this task's address, listening or not; none: it is bound here.
  process::Descriptor listening = {};
  const std::atomic<bool>* stop = nullptr;  // true gives waits for others up; null: nothing does
  std::function<void(const std::string& text)> note = {};  // for people; may be empty
};

// INVALID_ARGUMENT for a task that is not in the cluster; ALREADY_EXISTS where its address is
// taken. `clock` must outlive it.
absl::StatusOr<std::unique_ptr<Replicas>> JoinCluster(ClusterSpec spec, const net::Token& key,
                                                      const Clock& clock);

// Of the evaluator: follows the training of spec.tasks.front(), the chief, and listens nowhere.
// Its errors: the chief was away for rendezvous_seconds, or training has failed, and why.
absl::StatusOr<std::unique_ptr<TrainingWatch>> WatchCluster(ClusterSpec spec,
                                                            const net::Token& key);

}  // namespace muster::train
