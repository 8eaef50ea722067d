#include "muster/launch/kubernetes/pod_looks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "muster/launch/kubernetes/pod_plan.h"
#include "muster/net/http/message.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLooksATimeout = 4;
constexpr double kShortestLook = 1;
// A pod that has a node and does not start: the first look at its events, and all later ones.
constexpr double kFirstWarning = 10, kNextWarning = 20;
constexpr double kLogSeconds = 10;  // for a kubelet's answer
constexpr int kMaxWarnings = 50;
constexpr size_t kMaxWarningBytes = 400;

std::string GetContainerName(const TrainingJob& job, job::TaskType type) {
  const auto replica = job.spec.replicas.find(type);
  const Json* const container =
      replica == job.spec.replicas.end() ? nullptr : FindContainer(replica->second.pod_template);
  return container == nullptr ? std::string(kContainerName) : GetText(*container, "name");
}

bool IsWatched(const TrainingJob& job, const PodRecord& pod) {
  return job.spec.progress_timeout_seconds && pod.phase == Phase::kRunning && !pod.deleting &&
         pod.task.type != job::TaskType::kPs;
}

bool IsStuck(const PodRecord& pod) {
  return pod.phase == Phase::kStarting && pod.has_node && !pod.deleting;
}

absl::StatusOr<bool> HasWritten(KubeClient& client, const std::string& name_space,
                                const std::string& pod, const std::string& container, int seconds) {
  net::HttpCall call = {.method = "GET", .target = GetTarget(kPods, name_space, pod, "log")};
  const std::string what = StrCat("GET ", call.target);
  call.target += StrCat("?limitBytes=1&sinceSeconds=", seconds,
                        "&container=", net::EscapeForTarget(container));
  MUSTER_ASSIGN_OR_RETURN(const net::HttpAnswer answer, client.Fetch(call, kLogSeconds));
  if (answer.head.status == 200) return !answer.body.empty();
  return client.ToStatus(answer.head, answer.body, what);
}

absl::StatusOr<std::string> FindWarning(KubeClient& client, const std::string& name_space,
                                        const std::string& uid) {
  const std::string selector = StrCat("involvedObject.uid=", uid, ",type=Warning");
  MUSTER_ASSIGN_OR_RETURN(const Json list,
                          client.Get(StrCat(GetTarget(kEvents, name_space), "?limit=", kMaxWarnings,
                                            "&fieldSelector=", net::EscapeForTarget(selector))));
  const Json& events = Child(list, "items");
  const Json* newest = nullptr;
  if (!events.is_array()) return std::string();
  for (const Json& event : events) {
    if (newest == nullptr || GetVersion(event) > GetVersion(*newest)) newest = &event;
  }
  if (newest == nullptr) return std::string();
  std::string text = StrCat(GetText(*newest, "reason"), ": ", GetText(*newest, "message"));
  return text.substr(0, kMaxWarningBytes);
}

}  // namespace

PodQuestions MakePodQuestions(KubeClient& client) {
  return {.has_written =
              [&client](const std::string& name_space, const std::string& pod,
                        const std::string& container, int seconds) {
                return HasWritten(client, name_space, pod, container, seconds);
              },
          .find_warning =
              [&client](const std::string& name_space, const std::string& uid) {
                return FindWarning(client, name_space, uid);
              }};
}

double PodLooks::LookForLife(const TrainingJob& job, const std::string& name, job::TaskType type,
                             Seen* seen) const {
  const double now = Now();
  const double timeout = *job.spec.progress_timeout_seconds;
  const double pause = std::max(kShortestLook, timeout / kLooksATimeout);
  const auto next = [&] { return std::min(seen->looked_at + pause, seen->alive_at + timeout); };
  if (now < next()) return next() - now;
  const int seconds = static_cast<int>(std::ceil(now - seen->looked_at)) + 1;
  const auto written =
      questions_.has_written(job.spec.name_space, name, GetContainerName(job, type), seconds);
  seen->looked_at = now;
  if (!written.ok() || *written) seen->alive_at = now;
  seen->warning.clear();
  if (absl::IsPermissionDenied(written.status())) {
    seen->warning = StrCat("NoSignsOfLife: muster/progressTimeout has no effect: ",
                           ToStd(written.status().message()));
  }
  return std::max(kShortestLook, next() - now);
}

double PodLooks::LookForWarning(const TrainingJob& job, const std::string& uid, Seen* seen) const {
  const double now = Now();
  const bool is_first = seen->looked_at == seen->since;
  const double next = seen->looked_at + (is_first ? kFirstWarning : kNextWarning);
  if (now < next) return next - now;
  seen->looked_at = now;
  if (auto warning = questions_.find_warning(job.spec.name_space, uid); warning.ok()) {
    seen->warning = *std::move(warning);
  }
  return kNextWarning;
}

double PodLooks::Look(const std::string& key, const TrainingJob& job, JobView* view) {
  SeenPods before, after;
  {
    const MutexLock lock(&mutex_);
    if (const auto found = jobs_.find(key); found != jobs_.end()) before = found->second;
  }
  double wake = kNever;
  const double now = Now();
  for (auto& [name, pod] : view->pods) {
    const bool is_watched = IsWatched(job, pod);
    if (!is_watched && !IsStuck(pod)) continue;
    const auto known = before.find(pod.uid);
    const bool is_same = known != before.end() && known->second.phase == pod.phase &&
                         known->second.restarts == pod.restarts_in_place;
    Seen seen = is_same ? known->second
                        : Seen{.since = now,
                               .looked_at = now,
                               .alive_at = now,
                               .restarts = pod.restarts_in_place,
                               .phase = pod.phase};
    wake = std::min(wake, is_watched ? LookForLife(job, name, pod.task.type, &seen)
                                     : LookForWarning(job, pod.uid, &seen));
    pod.idle_seconds = is_watched ? seen.looked_at - seen.alive_at : 0;
    if (pod.problem.empty()) pod.problem = seen.warning;
    after[pod.uid] = std::move(seen);
  }
  const MutexLock lock(&mutex_);
  if (after.empty()) {
    jobs_.erase(key);
  } else {
    jobs_[key] = std::move(after);
  }
  return wake;
}

void PodLooks::Forget(const std::string& key) {
  const MutexLock lock(&mutex_);
  jobs_.erase(key);
}

}  // namespace muster::launch::kubernetes
