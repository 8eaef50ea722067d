// PodGroups: gang scheduling by Volcano or by a scheduler of scheduler-plugins, as Kubeflow's
// training operator does it. A job has a PodGroup of its name, from schedulingPolicy; Volcano's
// must be admitted before pods are made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/launch/kubernetes/api/reflector.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {

class PodGroups : public ObjectSink {
 public:
  // `scheduler`: "volcano", or the name of a scheduler with scheduler-plugins. `due` is called with
  // "NAMESPACE/NAME" of a job after a change of its group, under no lock.
  PodGroups(KubeClient& client, std::string scheduler,
            std::function<void(const std::string& key)> due);

  const KubeKind& kind() const;
  // FAILED_PRECONDITION if the cluster does not have this kind of PodGroup.
  absl::Status CheckKind(const std::string& name_space);

  // Makes the job's group, or changes it to what the job says now. UNAVAILABLE says why the job's
  // pods must not be made yet.
  absl::Status Sync(const TrainingJob& job, const Json& object);
  // Returns whether there was a group to delete.
  absl::StatusOr<bool> Delete(const TrainingJob& job);
  // Makes a pod one of the job's group. A scheduler that the pod names stays.
  void Decorate(const TrainingJob& job, job::TaskId task, Json* pod) const;
  // Whether a template names another scheduler, which ignores the group.
  bool HasOtherScheduler(const TrainingJob& job) const;

  void BeginList() override;
  void Set(Json object) override;
  void Remove(const Json& object) override;
  void EndList(int64_t version) override;

 private:
  bool is_volcano() const { return scheduler_ == "volcano"; }
  Json MakeSpec(const TrainingJob& job, const Json& existing) const;
  Json Find(const std::string& key) const;  // null: none is known
  bool Keep(Json object);                   // whether it is newer than what is known
  absl::Status Check(const Json& group) const;

  KubeClient& client_;
  const std::string scheduler_;
  const std::function<void(const std::string& key)> due_;
  mutable Mutex mutex_;
  std::map<std::string, Json> groups_ ABSL_GUARDED_BY(mutex_) = {};  // by NAMESPACE/NAME
  std::set<std::string> listed_ = {};                                // the reflector's thread
  bool listing_ = false;                                             // the reflector's thread
};

}  // namespace muster::launch::kubernetes
