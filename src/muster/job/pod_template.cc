#include "muster/job/pod_template.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "muster/formats/yaml_json.h"

namespace muster::job {
namespace {

const Json kNothing;
constexpr const char* kGpuResource = "nvidia.com/gpu";

const Json& Child(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? json[key] : kNothing;
}

std::string Text(const Json& json, const char* key) {
  const Json& child = Child(json, key);
  return child.is_string() ? child.get<std::string>() : std::string();
}

absl::Status WrongType(std::string_view field, std::string_view expected) {
  return absl::InvalidArgumentError(StrCat("template: ", field, " must be ", expected));
}

absl::StatusOr<const Json*> FindContainer(const Json& pod_template) {
  const Json& containers = Child(Child(pod_template, "spec"), "containers");
  if (!containers.is_array() || containers.empty()) {
    return absl::InvalidArgumentError("template.spec.containers: there is no container");
  }
  for (const Json& container : containers) {
    if (Text(container, "name") == "tensorflow") return &container;
  }
  if (containers.size() == 1) return &containers[0];
  return absl::InvalidArgumentError(
      "template.spec.containers: several, and none is named 'tensorflow', which is the one to run");
}

absl::Status AppendTexts(const Json& container, const char* key, std::vector<std::string>* out) {
  const Json& list = Child(container, key);
  if (list.is_null()) return absl::OkStatus();
  if (!list.is_array()) return WrongType(key, "a list of texts");
  for (const Json& item : list) {
    if (!item.is_string()) {
      return WrongType(key, StrCat("a list of texts; ", item.dump(), " needs quotes"));
    }
    out->push_back(item.get<std::string>());
  }
  return absl::OkStatus();
}

// Replaces $(NAME) by the value in `env` and $$ by $; an unknown name stays unchanged.
std::string Expand(const std::string& text,
                   const std::vector<std::pair<std::string, std::string>>& env) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += '$';
      ++i;
    } else if (const size_t end = text.find(')', i);
               text[i + 1] == '(' && end != std::string::npos) {
      const std::string name = text.substr(i + 2, end - i - 2);
      const auto found = std::find_if(env.rbegin(), env.rend(),
                                      [&](const auto& entry) { return entry.first == name; });
      out += found == env.rend() ? text.substr(i, end - i + 1) : found->second;
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The placeholders for a field of the pod. A field that only Kubernetes knows has none.
std::optional<std::string> FieldOfPod(const Json& value_from) {
  const std::string path = Text(Child(value_from, "fieldRef"), "fieldPath");
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"metadata.name", "{job}-{type}-{index}"},
      {"metadata.namespace", "{namespace}"},
      {"spec.nodeName", "{node}"},
      {"status.podIP", "{host}"},
      {"status.hostIP", "{host}"}};
  for (const auto& [field, placeholders] : kFields) {
    if (path == field) return std::string(placeholders);
  }
  return std::nullopt;
}

absl::Status ReadEnv(const Json& container, Process* process) {
  const Json& list = Child(container, "env");
  if (list.is_null()) return absl::OkStatus();
  if (!list.is_array()) return WrongType("env", "a list");
  std::vector<std::string> unknown, flags;  // variables whose value is not on this machine
  for (const Json& item : list) {
    const std::string name = Text(item, "name");
    if (name.empty()) return WrongType("env", "a list of entries with a name");
    if (name.find('=') != std::string::npos) return WrongType("env", "named without '='");
    if (const Json& value_from = Child(item, "valueFrom"); !value_from.is_null()) {
      const auto field = FieldOfPod(value_from);
      process->env.emplace_back(name, field.value_or(""));
      if (field) continue;
      unknown.push_back(name);
      flags.push_back(StrCat("--env ", name, "=VALUE"));
      continue;
    }
    const Json& value = Child(item, "value");
    if (!value.is_null() && !value.is_string()) {
      return WrongType(StrCat("env ", name), StrCat("a text; ", value.dump(), " needs quotes"));
    }
    std::string text = value.is_null() ? "" : Expand(value.get<std::string>(), process->env);
    process->env.emplace_back(name, std::move(text));
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("template: env ", absl::StrJoin(unknown, ", "),
             ": valueFrom names a Kubernetes object, which is not here; give a value, or set it "
             "with ",
             absl::StrJoin(flags, " ")));
}

absl::Status ReadLimits(const Json& container, Process* process) {
  const Json& limits = Child(Child(container, "resources"), "limits");
  const auto read = [&](const char* key, double* value) -> absl::Status {
    const Json& limit = Child(limits, key);
    if (limit.is_null()) return absl::OkStatus();
    auto quantity = ParseQuantity(limit.is_string() ? limit.get<std::string>() : limit.dump());
    MUSTER_RETURN_IF_ERROR(Annotate(quantity.status(), StrCat("template: resources.limits.", key)));
    *value = *quantity;
    return absl::OkStatus();
  };
  double memory = 0, gpus = 0;
  MUSTER_RETURN_IF_ERROR(read("cpu", &process->cpus));
  MUSTER_RETURN_IF_ERROR(read("memory", &memory));
  MUSTER_RETURN_IF_ERROR(read(kGpuResource, &gpus));
  if (gpus != std::floor(gpus) || gpus > 1024) {
    return absl::InvalidArgumentError("template: resources.limits.nvidia.com/gpu: no whole number");
  }
  process->memory_bytes = static_cast<int64_t>(std::min(memory, 9e18));
  process->gpus = static_cast<int>(gpus);
  return absl::OkStatus();
}

absl::Status ReadVolumes(const Json& pod, const Json& container, Process* process) {
  for (const Json& mount : Child(container, "volumeMounts")) {
    VolumeMount out{.volume = Text(mount, "name"), .mount_path = Text(mount, "mountPath")};
    out.read_only = Child(mount, "readOnly") == true;
    bool found = false;
    for (const Json& volume : Child(pod, "volumes")) {
      if (Text(volume, "name") != out.volume) continue;
      found = true;
      out.claim = Text(Child(volume, "persistentVolumeClaim"), "claimName");
      out.host_path = Text(Child(volume, "hostPath"), "path");
    }
    if (!found) {
      return absl::InvalidArgumentError(StrCat("template: volumeMounts: there is no volume '",
                                               out.volume, "' in template.spec.volumes"));
    }
    process->volumes.push_back(std::move(out));
  }
  return absl::OkStatus();
}

// The text is escaped: Kubernetes would replace $(NAME) in a word and read $$ as $.
Json EscapedWords(const std::vector<std::string>& words) {
  Json escaped = Json::array();
  for (const std::string& word : words) {
    escaped.push_back(absl::StrReplaceAll(word, {{"$", "$$"}}));
  }
  return escaped;
}

void ReadPort(const Json& container, Process* process) {
  for (const Json& port : Child(container, "ports")) {
    const Json& number = Child(port, "containerPort");
    if (Text(port, "name") != "tfjob-port" || !number.is_number_integer()) continue;
    const auto value = number.get<int64_t>();
    if (value > 0 && value < 65536) process->port = static_cast<int>(value);
  }
}

}  // namespace

absl::StatusOr<Process> ParseProcess(const Json& pod_template) {
  MUSTER_ASSIGN_OR_RETURN(const Json* container, FindContainer(pod_template));
  Process process;
  MUSTER_RETURN_IF_ERROR(AppendTexts(*container, "command", &process.command));
  if (process.command.empty()) {
    return absl::InvalidArgumentError(
        "template: the container has no 'command', and its image's entry point is not on this "
        "machine: give the command after --, as in muster run job.yaml -- python main.py");
  }
  MUSTER_RETURN_IF_ERROR(AppendTexts(*container, "args", &process.command));
  MUSTER_RETURN_IF_ERROR(ReadEnv(*container, &process));
  for (std::string& word : process.command) word = Expand(word, process.env);
  MUSTER_RETURN_IF_ERROR(ReadLimits(*container, &process));
  MUSTER_RETURN_IF_ERROR(ReadVolumes(Child(pod_template, "spec"), *container, &process));
  ReadPort(*container, &process);
  process.working_directory = Text(*container, "workingDir");
  process.image = Text(*container, "image");
  return process;
}

Json* GetContainer(Json* pod_template) {
  const auto container = FindContainer(*pod_template);
  return container.ok() ? const_cast<Json*>(*container) : nullptr;  // NOLINT: it is not const
}

bool HasCommand(const Json& pod_template) {
  const auto container = FindContainer(pod_template);
  return container.ok() && !Child(**container, "command").empty();
}

void SetEntryPoint(const std::vector<std::string>& entry_point, Json* pod_template) {
  Json* const container = GetContainer(pod_template);
  if (container == nullptr || HasCommand(*pod_template)) return;
  (*container)["command"] = EscapedWords(entry_point);
}

bool SetGpus(int gpus, Json* pod_template) {
  Json* const container = GetContainer(pod_template);
  if (container == nullptr) return false;
  const Json before = *container;
  if (gpus > 0) {
    (*container)["resources"]["limits"][kGpuResource] = gpus;
  } else if (!Child(Child(*container, "resources"), "limits").is_null()) {
    (*container)["resources"]["limits"].erase(kGpuResource);
  }
  return *container != before;
}

void SetEnv(const std::string& name, const std::string& value, Json* pod_template) {
  Json* const container = GetContainer(pod_template);
  if (container == nullptr) return;
  Json env = Json::array();
  for (const Json& entry : Child(*container, "env")) {
    if (Text(entry, "name") != name) env.push_back(entry);
  }
  env.push_back({{"name", name}, {"value", value}});
  (*container)["env"] = std::move(env);
}

std::vector<std::string> UnusedFields(const Json& pod_template) {
  std::vector<std::string> fields;
  const Json& pod = Child(pod_template, "spec");
  for (const char* key : {"nodeSelector", "affinity", "tolerations", "serviceAccountName",
                          "imagePullSecrets", "securityContext", "initContainers", "schedulerName",
                          "priorityClassName", "hostNetwork", "terminationGracePeriodSeconds"}) {
    if (!Child(pod, key).is_null()) fields.emplace_back(key);
  }
  const Json& containers = Child(pod, "containers");
  if (containers.is_array() && containers.size() > 1) fields.emplace_back("sidecar containers");
  for (const Json& container : containers) {
    for (const char* key : {"image", "livenessProbe", "readinessProbe", "envFrom", "lifecycle"}) {
      if (!Child(container, key).is_null() &&
          std::find(fields.begin(), fields.end(), key) == fields.end()) {
        fields.emplace_back(key);
      }
    }
    // If there is a limit too, the limit counts.
    const Json& resources = Child(container, "resources");
    for (const auto& [name, quantity] : Child(resources, "requests").items()) {
      if (Child(Child(resources, "limits"), name.c_str()).is_null()) {
        fields.push_back(StrCat("the request of ", name));
      }
    }
  }
  return fields;
}

std::vector<std::string> UnusedPolicies(const JobSpec& spec) {
  std::vector<std::string> fields;
  if (spec.clean_pod_policy != CleanPodPolicy::kNone) fields.emplace_back("cleanPodPolicy");
  if (!spec.scheduling_policy.is_null()) fields.emplace_back("schedulingPolicy");
  if (!spec.managed_by.empty()) fields.emplace_back("managedBy");
  return fields;
}

Json TemplateFor(const std::vector<std::string>& command) {
  const Json container = {{"name", "tensorflow"}, {"command", EscapedWords(command)}};
  return {{"spec", {{"containers", Json::array({container})}}}};
}

Json ReadPodTemplate(const formats::YamlReader& node) {
  if (node.ok() && !node.IsMap()) node.Fail("must be a pod template: a map with 'spec'");
  return formats::YamlToJson(node);
}

void SetTaskPort(int port, Json* pod_template) {
  if (!Child(Child(*pod_template, "spec"), "containers").is_array()) return;
  Json& containers = (*pod_template)["spec"]["containers"];
  for (Json& container : containers) {
    if (!container.is_object()) continue;
    if (Text(container, "name") != "tensorflow" && containers.size() > 1) continue;
    Json& ports = container["ports"];
    if (ports.is_null()) ports = Json::array();
    if (ports.is_array()) ports.push_back({{"name", "tfjob-port"}, {"containerPort", port}});
  }
}

absl::StatusOr<double> ParseQuantity(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto bad = [&] {
    return absl::InvalidArgumentError(StrCat("'", text, "' is no quantity such as 500m or 2Gi"));
  };
  if (parsed.ec != std::errc() || !(value >= 0) || !std::isfinite(value)) return bad();
  const std::string_view unit = text.substr(static_cast<size_t>(parsed.ptr - text.data()));
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                            {"m", 1e-3},
                                                            {"k", 1e3},
                                                            {"M", 1e6},
                                                            {"G", 1e9},
                                                            {"T", 1e12},
                                                            {"P", 1e15},
                                                            {"Ki", 1024.0},
                                                            {"Mi", 1048576.0},
                                                            {"Gi", 1073741824.0},
                                                            {"Ti", 1099511627776.0}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return value * factor;
  }
  return bad();
}

}  // namespace muster::job
