// KubernetesPlace: a TFJob of a cluster as a place (control/job_place.h). The API server is asked;
// what the operator has written into the job's status is what a coordinator says elsewhere. It
// works for any TFJob that Muster's operator runs, whoever has made it.
//
// Stop() sets the annotation muster/stop: the operator deletes the pods that run, and the job stays
// with its state, its failures and the pods that have ended before. Remove() deletes the job with
// all of its pods and services.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/control/job_place.h"
#include "muster/launch/kubernetes/place/cluster.h"
#include "muster/launch/kubernetes/place/job_description.h"
#include "muster/launch/kubernetes/place/log_stream.h"
#include "muster/launch/kubernetes/place/pod_log.h"

namespace muster::launch::kubernetes {

class KubernetesPlace : public control::JobPlace, private PodLookup {
 public:
  // A job that is deleted and made anew by its name is another one: this place does not see it
  // once it has described the first. `uid`: of the job, if it is known from an earlier time.
  KubernetesPlace(Cluster cluster, std::string name, std::string uid = "")
      : cluster_(std::move(cluster)),
        name_(std::move(name)),
        notice_(std::make_shared<LogNotice>()),
        uid_(std::move(uid)) {}

  // The TFJob as the API server has it. NOT_FOUND names the jobs that there are in the namespace.
  absl::StatusOr<Json> GetJob();
  absl::StatusOr<formats::Json> Describe() override;
  absl::Status Stop(const std::string& why) override;
  absl::Status Suspend(bool suspended) override;
  absl::Status Resume() override;
  absl::StatusOr<std::string> Remove(bool with_work) override;
  absl::StatusOr<std::unique_ptr<control::LogSource>> OpenLog(job::TaskId task) override;
  bool WaitForEnd(double seconds) override;

 private:
  absl::Status Patch(Json patch);
  absl::Status ListPods(const Json& job);
  absl::Status DescribeAbsence() const;
  absl::StatusOr<std::optional<PodInfo>> FindPod(job::TaskId task) override;
  std::optional<std::string> DescribeLoss(job::TaskId task) const override;
  absl::Status Explain(const absl::Status& status) const override;

  mutable Cluster cluster_;
  const std::string name_;
  const std::shared_ptr<const LogNotice> notice_;
  std::string uid_ = {};  // "": the job was not asked for yet
  Json job_ = {};         // as it was described last
  Json described_ = {};
  std::map<job::TaskId, PodInfo> pods_ = {};
  std::chrono::steady_clock::time_point pods_at_ = {};  // when they were listed
};

// The descriptions of TFJobs of the cluster's namespace: of those that `wanted` names, with the uid
// of each if it is known from an earlier time ("": of any); of all if it names none. The server is
// asked for the jobs once, for their pods once (without the right to see pods the operator's words
// are given), and once for each lease of an operator.
absl::StatusOr<std::vector<formats::Json>> DescribeJobs(
    Cluster& cluster, const std::map<std::string, std::string>& wanted = {});

}  // namespace muster::launch::kubernetes
