#include "muster/launch/kubernetes/job_metrics.h"

#include <string_view>

#include "muster/base/strings.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::pair<JobCount, std::string_view> kNames[] = {{JobCount::kCreated, "created"},
                                                            {JobCount::kDeleted, "deleted"},
                                                            {JobCount::kSuccessful, "successful"},
                                                            {JobCount::kFailed, "failed"},
                                                            {JobCount::kRestarted, "restarted"}};

}  // namespace

void JobMetrics::Count(JobCount what, const std::string& name_space, uint64_t n) {
  if (n == 0) return;
  const MutexLock lock(&mutex_);
  counts_[{what, name_space}] += n;
}

std::string JobMetrics::Print() const {
  const MutexLock lock(&mutex_);
  std::string text;
  for (const auto& [what, name] : kNames) {
    const std::string metric = StrCat("training_operator_jobs_", name, "_total");
    text += StrCat("# HELP ", metric, " Jobs, by namespace and framework.\n# TYPE ", metric,
                   " counter\n");
    for (const auto& [key, count] : counts_) {
      if (key.first != what) continue;
      text += StrCat(metric, "{job_namespace=\"", key.second, "\",framework=\"tensorflow\"} ",
                     count, "\n");
    }
  }
  return text;
}

}  // namespace muster::launch::kubernetes
