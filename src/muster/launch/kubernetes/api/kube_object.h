// Objects of Kubernetes' API as JSON: their addresses, and the fields that all of them have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"

namespace muster::launch::kubernetes {

using formats::Json;

struct KubeKind {
  std::string_view group_version;  // "v1" of the core group, "kubeflow.org/v1"
  std::string_view plural;         // "pods"
};

inline constexpr KubeKind kPods = {"v1", "pods"};
inline constexpr KubeKind kServices = {"v1", "services"};
inline constexpr KubeKind kEvents = {"v1", "events"};
inline constexpr KubeKind kTfJobs = {"kubeflow.org/v1", "tfjobs"};
inline constexpr KubeKind kLeases = {"coordination.k8s.io/v1", "leases"};
inline constexpr KubeKind kDefinitions = {"apiextensions.k8s.io/v1", "customresourcedefinitions"};

// "/api/v1/namespaces/NS/pods/NAME/SUBRESOURCE", without the parts that are empty.
std::string GetTarget(const KubeKind& kind, std::string_view name_space, std::string_view name = "",
                      std::string_view subresource = "");

// An object that an API server sent; INVALID_ARGUMENT "WHERE: ..." for anything else. It may nest
// as deep as an API server allows, so that nobody's object stops a list of all.
absl::StatusOr<Json> ParseKubeObject(std::string_view text, std::string_view where);

// The child of an object; null if there is none. Chains: Child(Child(pod, "spec"), "nodeName").
const Json& Child(const Json& object, std::string_view name);
// The child if it is a text; else "".
std::string TextOf(const Json& object, std::string_view name);
// The child if it is a whole number that an int64 holds; else `fallback`.
int64_t NumberOf(const Json& object, std::string_view name, int64_t fallback = 0);

std::string NameOf(const Json& object);       // metadata.name
std::string NamespaceOf(const Json& object);  // metadata.namespace
std::string UidOf(const Json& object);        // metadata.uid
// metadata.resourceVersion as a number: of two versions of an object the greater one is newer. 0 if
// it is none.
int64_t VersionOf(const Json& object);

}  // namespace muster::launch::kubernetes
