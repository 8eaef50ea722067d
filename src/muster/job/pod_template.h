// A pod template as far as one process of it goes: the container `tensorflow` (or the only one).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/yaml_reader.h"
#include "muster/job/job_spec.h"

namespace muster::job {

constexpr int kDefaultPort = 2222;  // TFJob's, named tfjob-port

struct VolumeMount {
  std::string volume = {};  // its name in the template; "" for a PVC or hostPath of that path
  std::string claim = {};   // persistentVolumeClaim's, or ""
  std::string host_path = {};
  std::string mount_path = {};
  bool read_only = false;
  friend bool operator==(const VolumeMount&, const VolumeMount&) = default;
};

struct Process {
  std::vector<std::string> command;                      // with its arguments behind it
  std::vector<std::pair<std::string, std::string>> env;  // in order; later ones win
  std::string working_directory;                         // "" for the job's own
  double cpus = 0;                                       // limit; 0: none
  int64_t memory_bytes = 0;                              // limit; 0: none
  int gpus = 0;                                          // nvidia.com/gpu
  int port = kDefaultPort;
  std::vector<VolumeMount> volumes;
  std::string image;
};

// INVALID_ARGUMENT names the field: no container, none called tensorflow among several, no command
// (an image's own entry point is nothing on this machine), an environment variable that comes from
// a Kubernetes object. `$(NAME)` in command and arguments is replaced from `env`, as Kubernetes
// does.
absl::StatusOr<Process> ProcessOf(const Json& pod_template);

// Gives that container an environment variable, in place of one of that name.
void SetEnv(const std::string& name, const std::string& value, Json* pod_template);

// The container that ProcessOf() reads; null when there is none.
Json* ContainerOf(Json* pod_template);

// What the template asks for that one machine does not give: "image", "nodeSelector", ....
std::vector<std::string> UnusedFields(const Json& pod_template);

// A template of one container that runs `command`.
Json TemplateFor(const std::vector<std::string>& command);

// A manifest's `template`, kept as it is; one that is no map goes to node.Fail().
Json ReadPodTemplate(const formats::YamlReader& node);

// Gives the container named tensorflow, or the only one, TFJob's "tfjob-port"; a template of
// another form stays as it is.
void SetTaskPort(int port, Json* pod_template);

// "500m" CPUs, "1.5Gi", "2e9" bytes: Kubernetes' quantities.
absl::StatusOr<double> ParseQuantity(std::string_view text);

}  // namespace muster::job
