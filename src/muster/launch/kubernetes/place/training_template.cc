#include "muster/launch/kubernetes/place/training_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_replace.h"

#include "muster/job/pod_template.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

// The user of Muster's own images (packaging/containers/Dockerfile).
constexpr int64_t kImageUser = 65532;

// $(NAME) of a text would be replaced by Kubernetes.
std::string Escape(const std::string& text) { return absl::StrReplaceAll(text, {{"$", "$$"}}); }

// The container that trains, which is made if the template has none.
Json& GetTrainingContainer(Json* pod_template) {
  Json& containers = (*pod_template)["spec"]["containers"];
  if (!containers.is_array()) containers = Json::array();
  for (Json& container : containers) {
    if (GetText(container, "name") == kContainerName) return container;
  }
  const bool is_only = containers.size() == 1 && containers[0].is_object();
  if (!is_only) containers.insert(containers.begin(), Json::object());
  containers[0]["name"] = kContainerName;
  return containers[0];
}

}  // namespace

absl::StatusOr<ClaimMount> ParseClaimMount(std::string_view text) {
  const size_t colon = text.find(':');
  const bool is_mount = colon != text.npos && colon > 0 && text.substr(colon + 1).starts_with('/');
  if (!is_mount) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is not CLAIM:/PATH, such as data:/data"));
  }
  return ClaimMount{.claim = std::string(text.substr(0, colon)),
                    .path = std::string(text.substr(colon + 1))};
}

absl::StatusOr<Json> MakeTrainingTemplate(const TrainingPod& pod) {
  Json made = pod.pod_template.is_object() ? pod.pod_template : Json::object();
  Json mounts = Json::array();
  for (size_t i = 0; i < pod.volumes.size(); ++i) {
    const std::string name = StrCat("muster-volume-", i);
    made["spec"]["volumes"].push_back(
        {{"name", name}, {"persistentVolumeClaim", {{"claimName", pod.volumes[i].claim}}}});
    mounts.push_back({{"name", name}, {"mountPath", pod.volumes[i].path}});
  }
  if (Child(made["spec"], "securityContext").is_null()) {
    made["spec"]["securityContext"] = {{"fsGroup", kImageUser},
                                       {"fsGroupChangePolicy", "OnRootMismatch"}};
  }
  Json& container = GetTrainingContainer(&made);
  if (!pod.image.empty()) container["image"] = pod.image;
  if (GetText(container, "image").empty()) {
    return absl::InvalidArgumentError(
        "give the image that has muster with --image, or in --pod-template");
  }
  Json words = Json::array();
  for (const std::string& word : pod.command) words.push_back(Escape(word));
  container["command"] = std::move(words);
  container.erase("args");
  for (const Json& mount : mounts) container["volumeMounts"].push_back(mount);
  if (!pod.model.empty()) job::SetEnv(pod.model_variable, Escape(pod.model), &made);
  return made;
}

std::vector<std::string> GetMountPaths(const Json& pod_template) {
  Json copy = pod_template;
  std::vector<std::string> paths;
  const Json& mounts = Child(GetTrainingContainer(&copy), "volumeMounts");
  if (!mounts.is_array()) return paths;
  for (const Json& mount : mounts) paths.push_back(GetText(mount, "mountPath"));
  return paths;
}

bool IsBelow(std::string_view path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    std::string_view whole = folder;
    while (whole.ends_with('/')) whole.remove_suffix(1);
    return path.starts_with(whole) && (path.size() == whole.size() || path[whole.size()] == '/');
  });
}

}  // namespace muster::launch::kubernetes
