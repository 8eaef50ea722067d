// Flags that say where a job is that was not started from this machine, and jobs of a cluster.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/control/job_place.h"
#include "muster/control/place_record.h"
#include "muster/launch/kubernetes/place/cluster.h"
#include "muster/launch/kubernetes/place/submission.h"
#include "muster/launch/yarn/submission.h"

namespace muster::cli {

inline constexpr char kKubernetesKind[] = "kubernetes";
using launch::yarn::kYarnKind;

struct WhereFlags {
  std::string on;  // "": by the record on this machine
  launch::kubernetes::ClusterFlags cluster;

  bool is_elsewhere() const { return !on.empty(); }
  bool is_yarn() const { return on == kYarnKind; }
};

// Adds --on, --namespace, --context and --kubeconfig.
void AddWhereFlags(CLI::App& verb, WhereFlags* flags);
// The names of these flags, each of which takes a value.
std::vector<std::string> GetWhereFlagNames();

// A job of a cluster.
struct ClusterJob {
  launch::kubernetes::Cluster cluster = {};
  std::string name = {};
  std::string uid = {};  // "": any job of that name
};
// The job that `flags` or its record on this machine say to be in a cluster; nullopt for one that
// is elsewhere. FAILED_PRECONDITION if the kubeconfig leads to another server now.
absl::StatusOr<std::optional<ClusterJob>> FindClusterJob(const std::string& name,
                                                         const WhereFlags& flags);

using OpenedPlace = absl::StatusOr<std::unique_ptr<control::JobPlace>>;

// Opens the job that `flags` say where to find.
OpenedPlace OpenElsewhere(const WhereFlags& flags, const std::string& name);
// Frees the name of a job that is about to be submitted: the record on this machine of a job that
// its place does not have any more is removed. ALREADY_EXISTS if a job of that name is there.
absl::Status FreeName(const std::string& name);

// Opens the job of a record of kKubernetesKind. FAILED_PRECONDITION if the kubeconfig leads to
// another server now.
OpenedPlace OpenKubernetes(const control::JobFolder& folder, const control::PlaceRecord& record);

// Descriptions of the jobs that `flags` say where to find.
absl::StatusOr<std::vector<formats::Json>> DescribeElsewhere(const WhereFlags& flags);

// What a record of kKubernetesKind calls its job.
struct ClusterId {
  std::string name_space = {};
  std::string name = {};
  std::string uid = {};  // "": the server has not told it
};
// nullopt for a record of another kind, or one that is damaged.
std::optional<ClusterId> ReadClusterId(const control::PlaceRecord& record);

// A job with its record on this machine.
struct RecordedJob {
  control::JobFolder folder = {};
  control::PlaceRecord record = {};
};
// Descriptions of those jobs that their cluster still has. The records have ids (ReadClusterId) and
// name one namespace of one cluster. FAILED_PRECONDITION as from OpenKubernetes.
absl::StatusOr<std::vector<formats::Json>> DescribeRecorded(const std::vector<RecordedJob>& jobs);

// Removes the record on this machine of a job of that name which its cluster does not have any
// more.
absl::Status ForgetIfGone(const std::string& name);

// Makes the TFJob in the cluster, and its record on this machine, by which every verb finds it by
// its name alone. ALREADY_EXISTS if a job of that name is there, or runs on this machine.
absl::Status SubmitToCluster(const launch::kubernetes::JobFile& file, const WhereFlags& flags);

}  // namespace muster::cli
