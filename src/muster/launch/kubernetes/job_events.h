// JobEvents: what people are told of a job as events of the API server, and what is counted for
// metrics with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/job/job_status.h"
#include "muster/launch/kubernetes/api/kube_calls.h"
#include "muster/launch/kubernetes/job_metrics.h"
#include "muster/launch/kubernetes/pod_record.h"

namespace muster::launch::kubernetes {

// Any thread. An error of a call is ignored, and an operator that does not lead tells nothing.
class JobEvents {
 public:
  JobEvents(KubeCalls& client, const Clock& clock, JobMetrics& metrics, std::function<bool()> leads)
      : client_(client), clock_(clock), metrics_(metrics), leads_(std::move(leads)) {}

  // An event of `object`, a TFJob.
  void Tell(const Json& object, bool is_warning, std::string_view reason, std::string_view message);
  // A warning of what stays wrong and is found at each pass: it is told again after ten minutes.
  void TellLasting(const Json& object, std::string_view reason, std::string_view message);
  // What the server says of the template of a task's pod that it has made all the same.
  void TellWarnings(const Json& object, job::TaskType type,
                    const std::vector<std::string>& warnings);
  // One event with all names but those that are empty, such as "Created pod: a, b".
  void TellNames(const Json& object, const char* reason, const char* verb,
                 std::vector<std::string> names);
  // What newly keeps pods from starting. `problems` and `known`, those of before, are by task.
  void TellProblems(const Json& object, const std::map<std::string, PodRecord>& pods,
                    const std::map<std::string, std::string>& problems, const Json& known);
  // New conditions and failures.
  void TellChanges(const Json& object, const job::JobSpec& spec, const job::JobStatus& before,
                   const job::JobStatus& after);

 private:
  KubeCalls& client_;
  const Clock& clock_;
  JobMetrics& metrics_;
  const std::function<bool()> leads_;
  std::atomic<uint64_t> count_ = 0;
  Mutex mutex_;
  // When warnings were told, in monotonic seconds, by the job's uid, reason and message.
  std::map<std::string, double> lasting_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
