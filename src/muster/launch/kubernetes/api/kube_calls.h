// The calls of Kubernetes' API that a controller makes of single objects. Their statuses are those
// of kube_client.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

// A target is what GetTarget() returns. All but Delete return the object as it is then.
class KubeCalls {
 public:
  virtual ~KubeCalls() = default;
  virtual absl::StatusOr<Json> Get(const std::string& target) = 0;
  // `warnings` get what the server says about the object beside making it: fields that it does not
  // know and leaves out (unknown field "spec.nodeNam"), what a policy would not allow.
  virtual absl::StatusOr<Json> Create(const std::string& target, const Json& object,
                                      std::vector<std::string>* warnings = nullptr) = 0;
  // Replaces the object of the version that `object` has: ABORTED if that is not the current one.
  virtual absl::StatusOr<Json> Replace(const std::string& target, const Json& object) = 0;
  virtual absl::StatusOr<Json> MergePatch(const std::string& target, const Json& patch) = 0;
  // For Kubernetes' own kinds, whose lists have keys.
  virtual absl::StatusOr<Json> StrategicPatch(const std::string& target, const Json& patch) = 0;
  // Deletes the object if its uid is this one, else ABORTED. `grace_seconds` < 0: the object's own.
  virtual absl::Status Delete(const std::string& target, const std::string& uid,
                              int64_t grace_seconds = -1) = 0;
};

}  // namespace muster::launch::kubernetes
