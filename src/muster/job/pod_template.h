// The parts of a pod template that concern one process: the container `tensorflow` (or the only
// one).
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
  std::string volume = {};  // its name in the template; "": a PVC or hostPath of that path
  std::string claim = {};   // persistentVolumeClaim's, or ""
  std::string host_path = {};
  std::string mount_path = {};
  bool read_only = false;
  friend bool operator==(const VolumeMount&, const VolumeMount&) = default;
};

struct Process {
  std::vector<std::string> command;                      // followed by its arguments
  std::vector<std::pair<std::string, std::string>> env;  // in order; later ones win
  std::string working_directory;                         // "" for the job's own
  double cpus = 0;                                       // limit; 0: none
  int64_t memory_bytes = 0;                              // limit; 0: none
  int gpus = 0;                                          // nvidia.com/gpu
  int port = kDefaultPort;
  std::vector<VolumeMount> volumes;
  std::string image;
};

// INVALID_ARGUMENT names the field: no container, several containers of which none is called
// tensorflow, no command (an image's own entry point does not exist on this machine), or
// environment variables that come from Kubernetes objects (all are listed). `$(NAME)` in command,
// arguments and values of `env` is replaced using the variables before it, as Kubernetes does. A
// fieldRef becomes a placeholder (tf_config.h) for the matching local value: metadata.name,
// metadata.namespace, spec.nodeName, status.podIP, status.hostIP.
absl::StatusOr<Process> ParseProcess(const Json& pod_template);

// Whether that container has a command. Without one, Kubernetes starts the image's entry point.
bool HasCommand(const Json& pod_template);

// If that container has no command, gives it `entry_point` in place of its image's. The container's
// `args` still follow it.
void SetEntryPoint(const std::vector<std::string>& entry_point, Json* pod_template);

// Replaces that container's nvidia.com/gpu limit by `gpus`; 0 removes it. Returns whether that
// changed it.
bool SetGpus(int gpus, Json* pod_template);

// Sets an environment variable of that container, replacing one of that name.
void SetEnv(const std::string& name, const std::string& value, Json* pod_template);

// The container that ParseProcess() reads; null when there is none.
Json* GetContainer(Json* pod_template);

// Fields of the template that have no effect on one machine: "image", "nodeSelector", ....
std::vector<std::string> UnusedFields(const Json& pod_template);

// Fields of a job's runPolicy that have no effect on one machine. cleanPodPolicy is one of them:
// what still runs when the job has succeeded ends as JobSpec::finish_timeout_seconds says.
std::vector<std::string> UnusedPolicies(const JobSpec& spec);

// A template of one container that runs `command`.
Json TemplateFor(const std::vector<std::string>& command);

// A manifest's `template`, kept as it is; one that is not a map is reported to node.Fail().
Json ReadPodTemplate(const formats::YamlReader& node);

// Gives the container named tensorflow, or the only one, TFJob's "tfjob-port"; a template of
// another form stays as it is.
void SetTaskPort(int port, Json* pod_template);

// "500m" CPUs, "1.5Gi", "2e9" bytes: Kubernetes' quantities.
absl::StatusOr<double> ParseQuantity(std::string_view text);

}  // namespace muster::job
