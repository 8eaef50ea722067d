// ClusterReplicas: the replicas of a job, each in its own process, connected by the addresses in
// TF_CONFIG.
//
// Every task listens on its own address. The chief hosts the membership there (membership/host.h),
// so that a job needs nothing but its tasks. For a generation each replica connects to those with
// which it exchanges something at each step: to all up to collective::kMostDirectRanks, and to some
// 3 log2 n of more (collective/rank_levels.h). Of two replicas that of the higher rank dials. Every
// connection requires the job's key.
#pragma once

#include <memory>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/process/descriptor.h"
#include "muster/train/allreduce/replicas.h"
#include "muster/train/cluster/task_context.h"
#include "muster/train/loop/training_watch.h"

namespace muster::train {

struct ClusterSpec {
  TaskContext context = {};
  // A replica, and the address on which it listens.
  struct Task {
    job::TaskId id = {};
    net::transport::Address address = {};
  };
  std::vector<Task> tasks = {};  // all replicas; the first is the chief
  int min_replicas = 0;          // this many suffice to begin and to continue; 0: all are needed
  bool evaluator = false;        // the job also has evaluator-0
  // A socket that is bound to this task's address, listening or not. If empty, JoinCluster binds
  // one.
  process::Descriptor listening = {};
};

// INVALID_ARGUMENT if spec.context.self is not among spec.tasks; ALREADY_EXISTS if its address is
// in use. `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<Replicas>> JoinCluster(ClusterSpec spec, const net::Token& key,
                                                      const Clock& clock);

// For the evaluator: follows the training of spec.tasks.front(), the chief; does not listen. The
// watch fails if the chief is away for rendezvous_seconds, or with the reason if training has
// failed.
absl::StatusOr<std::unique_ptr<TrainingWatch>> WatchCluster(ClusterSpec spec,
                                                            const net::Token& key);

}  // namespace muster::train
