// Any bytes as the body of a watch, in pieces of any size: events, of whose objects jobs, pods and
// statuses are read and a pass is planned. The first byte says how long the pieces are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/launch/kubernetes/api/watch_lines.h"
#include "muster/launch/kubernetes/job_cache.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace {

using namespace muster::launch::kubernetes;  // NOLINT: the target's only user

void Plan(const JobView& view) {
  const auto job = ReadTrainingJob(*view.object);
  auto status = ReadState(*view.object);
  if (!job.ok() || !status.ok()) return;
  JobView known = view;
  known.gone = FindUnseen(*job, *status, view);
  (void)IsOlderThanItsPods(*status, known);
  const JobPlan plan = PlanJob(*job, *status, known, {.wall = 1, .monotonic = 1, .clock_id = "c"});
  for (const TaskStart& start : plan.pods) {
    (void)MakePod(*job, start.task, start.incarnation, {});
  }
  const Json written = MakeStatus(job->spec, plan.status, plan.problems, plan.admitted);
  const auto again = ReadState({{"status", written}});
  if (!again.ok() || !(*again == plan.status)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = size_t{data[0]} + 1;
  JobCache cache([](const std::string&) {});
  WatchLines lines(
      "fuzz",
      [&cache](KubeEvent event) {
        const bool is_job = GetText(event.object, "kind") == "TFJob";
        const bool is_service = GetText(event.object, "kind") == "Service";
        ObjectSink& sink = is_job       ? cache.jobs()
                           : is_service ? cache.services()
                                        : cache.pods_sink();
        if (event.kind == KubeEvent::Kind::kDeleted) {
          sink.Remove(event.object);
        } else if (event.kind != KubeEvent::Kind::kBookmark) {
          sink.Set(std::move(event.object));
        }
      },
      kManagedFields, [](int64_t version) { return version % 2 == 0; });
  while (!bytes.empty()) {
    const size_t length = std::min(piece, bytes.size());
    if (!lines.Put(bytes.substr(0, length)).ok()) break;
    bytes.remove_prefix(length);
  }
  for (const std::string& key : cache.Keys()) Plan(cache.View(key));
  return 0;
}
