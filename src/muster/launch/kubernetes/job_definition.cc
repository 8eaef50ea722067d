// What the JobController does where the state of a job is not in its status: a definition of TFJob
// that does not know status.muster, such as that of Kubeflow's operator, hides it, and drops it
// when somebody writes.
#include <utility>

#include "muster/launch/kubernetes/job_controller.h"

namespace muster::launch::kubernetes {

// What is hidden comes back with the definition, if nobody has written meanwhile: without a change
// of the job's version, so that no watch brings it.
absl::Status JobController::LookForState(Pass& pass) {
  const auto definition = env_.client.Get(GetTarget(kDefinitions, "", kDefinitionName));
  MUSTER_RETURN_IF_ERROR(definition.status());
  const Json& annotations = Child(Child(*definition, "metadata"), "annotations");
  if (!Child(annotations, kDefinitionAnnotation).is_string()) return TellDropped(pass.object());
  const std::string uid = GetUid(pass.object());
  auto object =
      env_.client.Get(GetTarget(kTfJobs, GetNamespace(pass.object()), GetName(pass.object())));
  MUSTER_RETURN_IF_ERROR(object.status());
  if (GetUid(*object) != uid) return absl::AbortedError("another job has its name by now");
  pass.view.object = std::make_shared<const Json>(*std::move(object));
  pass.view.admitted = ReadAdmitted(pass.object());
  return absl::OkStatus();
}

absl::Status JobController::TellDropped(const Json& object) {
  const absl::Status dropped = absl::FailedPreconditionError(StrCat(
      "the CustomResourceDefinition ", kDefinitionName,
      " does not keep status.muster, so nothing is done about the job: install Muster's, ",
      kInstallDefinition, "; until then whoever changes the job removes what it says of restarts"));
  events_.TellLasting(object, "InvalidDefinition", ToStd(dropped.message()));
  return dropped;
}

void JobController::TellLost(const Json& object) {
  events_.Tell(object, true, "StateLost",
               "status.muster was removed: somebody has changed the job while a definition of "
               "TFJob without that field was installed. It continues with its pods; the restarts "
               "that were counted until now are forgotten");
}

}  // namespace muster::launch::kubernetes
