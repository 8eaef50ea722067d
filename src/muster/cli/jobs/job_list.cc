#include "muster/cli/jobs/job_list.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/where_flags.h"
#include "muster/control/place_record.h"

namespace muster::cli {
namespace {

using formats::Json;

using Described = absl::StatusOr<std::vector<Json>>;

// Jobs that are described by one question.
struct JobGroup {
  std::string cluster = {};  // how it is reached; "" for this machine
  bool is_kubernetes = false;
  std::vector<RecordedJob> jobs = {};
};

std::string GetJobName(const RecordedJob& job) { return io::Basename(job.folder.path); }

// By a key: jobs of one namespace of one Kubernetes cluster together, others on their own.
std::map<std::string, JobGroup> GroupJobs(const std::string& folder) {
  std::map<std::string, JobGroup> groups;
  for (const std::string& name : control::ListJobs(folder)) {
    const auto found = control::FindJobFolder(folder, name);
    if (!found.ok()) continue;  // removed meanwhile
    RecordedJob job = {.folder = *found, .record = {}};
    JobGroup group;
    std::string key = StrCat("job ", name);
    if (auto record = control::ReadPlaceRecord(*found); record.ok() && !record->url.empty()) {
      group.cluster =
          absl::StrJoin({record->kind, record->url, record->config, record->context}, " ");
      job.record = *std::move(record);
      if (const auto id = ReadClusterId(job.record)) {
        group.is_kubernetes = true;
        key = StrCat("namespace ", id->name_space, " ", group.cluster);
      }
    }
    groups.try_emplace(key, std::move(group)).first->second.jobs.push_back(std::move(job));
  }
  return groups;
}

Described DescribeOne(const RecordedJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJobIn(job.folder));
  MUSTER_ASSIGN_OR_RETURN(Json described, place->Describe());
  return std::vector<Json>{std::move(described)};
}

bool IsOfWholeCluster(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status) ||
         absl::IsFailedPrecondition(status);
}

// A cluster that does not answer, or does not let this machine in, and its jobs.
struct SilentCluster {
  std::string message = {};
  std::vector<std::string> jobs = {};
};

}  // namespace

Described DescribeAllHere(const Say& say) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, control::JobsFolder());
  RemoveAllExpired();
  std::vector<Json> all;
  std::map<std::string, SilentCluster> silent;
  for (const auto& [key, group] : GroupJobs(folder)) {
    auto known = silent.find(group.cluster);
    if (known == silent.end()) {
      Described found =
          group.is_kubernetes ? DescribeRecorded(group.jobs) : DescribeOne(group.jobs.front());
      if (absl::IsNotFound(found.status())) continue;  // it was removed from its cluster
      if (found.ok()) {
        std::move(found->begin(), found->end(), std::back_inserter(all));
        continue;
      }
      std::string why(ToStd(found.status().message()));
      if (group.cluster.empty() || !IsOfWholeCluster(found.status())) {
        say(why);
        continue;
      }
      known = silent.try_emplace(group.cluster, SilentCluster{.message = std::move(why)}).first;
    }
    for (const RecordedJob& job : group.jobs) known->second.jobs.push_back(GetJobName(job));
  }
  for (const auto& [cluster, found] : silent) {
    say(StrCat(found.message, "; not shown: ", absl::StrJoin(found.jobs, ", ")));
  }
  return all;
}

}  // namespace muster::cli
