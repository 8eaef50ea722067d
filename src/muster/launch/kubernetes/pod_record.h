// What the operator keeps of a pod: a few fields in place of some kilobytes of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/job/reconcile.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

// What TaskEnd::detail says of a pod that somebody has deleted.
inline constexpr char kPodWasDeleted[] = "its pod was deleted";

struct PodRecord {
  std::string uid = {};
  int64_t version = 0;
  job::TaskId task = {};
  int64_t incarnation = 0;  // 0: of a pod that this operator did not make
  job::TaskObservation::Phase phase = job::TaskObservation::Phase::kStarting;
  bool deleting = false;  // it runs until its grace period is over
  bool gated = false;     // it waits for its admission (admission.h)
  bool has_node = false;
  int restarts_in_place = 0;  // of the container, by the kubelet
  double idle_seconds = 0;    // without a sign of life, as PodLooks has found it
  job::TaskEnd end = {};      // kEnded and kGone
  std::optional<job::TaskEnd> end_in_place = {};  // of the run before the last of those restarts
  // Why it does not start: "ImagePullBackOff: ...", "Unschedulable: ...", or, without a word of
  // Kubernetes, why it goes on when its program has ended; "": it starts or runs.
  std::string problem = {};
};

// Whether the API server has said that there is no such pod any more.
inline bool IsGone(const PodRecord& pod) { return pod.phase == job::TaskObservation::Phase::kGone; }

// The job that owns an object: the TFJob that is its controller.
struct OwnerRecord {
  std::string name = {};
  std::string uid = {};
};
std::optional<OwnerRecord> FindOwner(const Json& object);

// nullopt for a pod whose labels name no task.
std::optional<PodRecord> ReadPod(const Json& pod);

// PodRecord::problem of any pod.
std::string FindPodProblem(const Json& pod);

// The record of a pod that does not exist any more. One that had not ended was ended by the
// platform, by a person, or on our own order.
PodRecord MakeGone(PodRecord last);

}  // namespace muster::launch::kubernetes
