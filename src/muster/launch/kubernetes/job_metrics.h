// Counters of jobs under the names that Kubeflow's training operator gives them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "muster/base/mutex.h"

namespace muster::launch::kubernetes {

enum class JobCount { kCreated, kDeleted, kSuccessful, kFailed, kRestarted };

// Any thread.
class JobMetrics {
 public:
  void Count(JobCount what, const std::string& name_space, uint64_t n = 1);
  // In Prometheus' text format.
  std::string Print() const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<JobCount, std::string>, uint64_t> counts_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
