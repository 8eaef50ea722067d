// Admission: a pod that the operator makes is not scheduled before the job's status names its uid.
//
// An operator that is stopped between its decision and its call may make a pod at any later time,
// when others have decided otherwise long ago; and a call that got no answer may have been done, or
// may be done later. Kubernetes has no call that makes a pod only if a job still has some version.
// So a pod is made with a scheduling gate. The status, which is written with the version that was
// read, then names the pod's uid as that of its task's incarnation, and after that the gate is
// removed. A pod that the status does not name never runs, and is deleted: an incarnation has one
// pod that runs, whoever made how many.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "muster/job/job_spec.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

inline constexpr std::string_view kAdmissionGate = "muster/admission";

// The uid of the pod that each task's incarnation has, as the job's status names it.
using AdmittedPods = std::map<job::TaskId, std::string>;

// Adds the gate; not to a pod whose template names its node, which has no scheduler to wait for and
// which Kubernetes would refuse with a gate.
void AddAdmissionGate(Json* pod);
bool HasAdmissionGate(const Json& pod);
// A strategic merge patch that removes the gate from the pod of that uid. It may be repeated.
Json MakeAdmissionPatch(const std::string& uid);

// The field `pods` of status.muster.
Json AdmittedToJson(const AdmittedPods& admitted);
// What `object`, a TFJob, has in that field. Entries that name no task are left out.
AdmittedPods ReadAdmitted(const Json& object);

}  // namespace muster::launch::kubernetes
