// Objects of Kubernetes' API as JSON: their addresses, and the fields that all of them have.
#pragma once

#include <cstdint>
#include <span>
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
inline constexpr KubeKind kSecrets = {"v1", "secrets"};
inline constexpr KubeKind kDeployments = {"apps/v1", "deployments"};
inline constexpr KubeKind kEvents = {"v1", "events"};
inline constexpr KubeKind kTfJobs = {"kubeflow.org/v1", "tfjobs"};
inline constexpr KubeKind kClaims = {"v1", "persistentvolumeclaims"};
inline constexpr KubeKind kLeases = {"coordination.k8s.io/v1", "leases"};
inline constexpr KubeKind kDefinitions = {"apiextensions.k8s.io/v1", "customresourcedefinitions"};

// The definition of TFJob, the annotation that Muster's has, and what installs it.
inline constexpr char kDefinitionName[] = "tfjobs.kubeflow.org";
inline constexpr char kDefinitionAnnotation[] = "muster/definition";
inline constexpr char kInstallDefinition[] = "kubectl apply -f deploy/kubernetes/crd.yaml";
inline constexpr char kReplaceDefinition[] = "kubectl replace -f deploy/kubernetes/crd.yaml";

// "/api/v1/namespaces/NS/pods/NAME/SUBRESOURCE", without the parts that are empty.
std::string GetTarget(const KubeKind& kind, std::string_view name_space, std::string_view name = "",
                      std::string_view subresource = "");

using Names = std::span<const std::string_view>;
inline constexpr std::string_view kManagedFields[] = {"managedFields"};
// The text without the members of these names, wherever they are: `name` in front of an object or a
// list. To leave them out costs less than to parse them.
std::string LeaveOut(std::string_view text, Names names);

// The text of a member's value in an object's text without white space, as an API server sends it:
// `"a"` with its quotes, `{...}`. "" if it is not found.
std::string_view FindMember(std::string_view object, std::string_view name);

// An object that an API server sent, without the members `left_out`; INVALID_ARGUMENT "WHERE: ..."
// for anything else. It may nest as deep as an API server allows, so that nobody's object stops a
// list of all.
absl::StatusOr<Json> ParseKubeObject(std::string_view text, std::string_view where,
                                     Names left_out = kManagedFields);

// What a server or a node says, without the full stop at its end: our messages continue after it.
// An ellipsis stays.
std::string_view WithoutFullStop(std::string_view text);

// The child of an object; null if there is none. Chains: Child(Child(pod, "spec"), "nodeName").
const Json& Child(const Json& object, std::string_view name);
// The child if it is a text; else "".
std::string GetText(const Json& object, std::string_view name);
// The child if it is a whole number that an int64 holds; else `fallback`.
int64_t GetNumber(const Json& object, std::string_view name, int64_t fallback = 0);

std::string GetName(const Json& object);       // metadata.name
std::string GetNamespace(const Json& object);  // metadata.namespace
std::string GetUid(const Json& object);        // metadata.uid
// metadata.resourceVersion as a number: of two versions of an object the greater one is newer. 0 if
// it is none.
int64_t GetVersion(const Json& object);
int64_t ParseVersion(std::string_view text);

}  // namespace muster::launch::kubernetes
