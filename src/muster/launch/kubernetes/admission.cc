#include "muster/launch/kubernetes/admission.h"

#include <algorithm>

namespace muster::launch::kubernetes {
namespace {

constexpr char kGates[] = "schedulingGates";

}  // namespace

void AddAdmissionGate(Json* pod) {
  Json& spec = (*pod)["spec"];
  if (!GetText(spec, "nodeName").empty()) return;
  Json& gates = spec[kGates];
  if (!gates.is_array()) gates = Json::array();
  gates.push_back({{"name", kAdmissionGate}});
}

bool HasAdmissionGate(const Json& pod) {
  const Json& gates = Child(Child(pod, "spec"), kGates);
  return gates.is_array() && std::any_of(gates.begin(), gates.end(), [](const Json& gate) {
           return GetText(gate, "name") == kAdmissionGate;
         });
}

Json MakeAdmissionPatch(const std::string& uid) {
  Json patch = {{"metadata", {{"uid", uid}}}};
  patch["spec"][kGates] = Json::array({{{"$patch", "delete"}, {"name", kAdmissionGate}}});
  return patch;
}

Json AdmittedToJson(const AdmittedPods& admitted) {
  Json json = Json::object();
  for (const auto& [task, uid] : admitted) json[job::TaskName(task)] = uid;
  return json;
}

AdmittedPods ReadAdmitted(const Json& object) {
  AdmittedPods admitted;
  const Json& pods = Child(Child(Child(object, "status"), "muster"), "pods");
  if (!pods.is_object()) return admitted;
  for (const auto& [name, uid] : pods.items()) {
    const auto task = job::ParseTaskName(name);
    if (task && uid.is_string()) admitted[*task] = uid.get<std::string>();
  }
  return admitted;
}

}  // namespace muster::launch::kubernetes
