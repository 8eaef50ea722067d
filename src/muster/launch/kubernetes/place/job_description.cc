#include "muster/launch/kubernetes/place/job_description.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "muster/control/coordinator.h"
#include "muster/job/pod_template.h"
#include "muster/launch/kubernetes/job_plan.h"
#include "muster/launch/kubernetes/pod_plan.h"
#include "muster/launch/kubernetes/training_job.h"

namespace muster::launch::kubernetes {
namespace {

constexpr double kNewSeconds = 10;  // seconds until an operator should have seen a new job

struct Advice {
  std::string_view part;  // of a problem, in lower case
  std::string_view text;
};
// The first that fits counts.
constexpr std::array kAdvice = {
    Advice{"errimagepull", "check the image's name, and the template's imagePullSecrets"},
    Advice{"imagepullbackoff", "check the image's name, and the template's imagePullSecrets"},
    Advice{"invalidimagename", "correct the image's name"},
    Advice{"errimageneverpull", "load the image into the node, or set imagePullPolicy"},
    Advice{"persistentvolumeclaim",
           "make that claim in the job's namespace, or name another one "
           "(kubectl get persistentvolumeclaims)"},
    Advice{"failedmount",
           "make the Secret, ConfigMap or disk that the volume names, or correct the template "
           "(kubectl describe pod)"},
    Advice{"failedattachvolume",
           "the volume's disk cannot be used on that node: another node may have it (kubectl "
           "describe pod)"},
    Advice{"exceeded quota",
           "ask for less, end other jobs, or have the quota raised (kubectl "
           "describe quota)"},
    Advice{"unschedulable",
           "no node has what the pod asks for: look at its resources, node "
           "selector and tolerations, and at kubectl describe nodes"},
    Advice{"createcontainerconfigerror", "make the Secret or ConfigMap that the template names"},
    Advice{"crashloopbackoff", "its log says why it ends (muster logs)"},
    Advice{"runcontainererror", "check the template's command, which the image must have"},
};

double ParseTime(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return 0;
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

std::string FindContainerName(const Json& pod) {
  const Json& containers = Child(Child(pod, "spec"), "containers");
  std::string first;
  if (!containers.is_array()) return first;
  for (const Json& container : containers) {
    const std::string name = GetText(container, "name");
    if (name == kContainerName) return name;
    if (first.empty()) first = name;
  }
  return first;
}

// Where each task is reached, if its pod runs.
Json GetAddresses(const job::JobSpec& spec) {
  Json addresses = Json::object();
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    const int port = process.ok() ? process->port : job::kDefaultPort;
    for (int index = 0; index < replica.replicas; ++index) {
      addresses[job::TaskName({type, index})] =
          StrCat(GetObjectName(spec, {type, index}), ".", spec.name_space, ".svc:", port);
    }
  }
  return addresses;
}

// What control::DescribeJob() reads of a journal, as far as the operator knows it.
Json MakeState(const job::JobSpec& spec, const job::JobStatus& status) {
  Json state = {{"addresses", GetAddresses(spec)}, {"last_lines", Json::object()}};
  for (const job::Failure& failure : status.failures) {
    if (failure.end.last_line.empty()) continue;
    state["last_lines"][control::IncarnationName(failure.task, failure.incarnation)] =
        Json::array({failure.end.last_line});
  }
  return state;
}

void AddWaitingTasks(const job::JobSpec& spec, job::JobStatus* status) {
  if (!status->tasks.empty() || status->ended()) return;
  for (const auto& [type, replica] : spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) status->tasks[{type, index}];
  }
}

// The phase by Kubeflow's conditions, for a job of which Muster's operator says nothing.
void SetPhaseByConditions(const Json& conditions, job::JobStatus* status) {
  if (!conditions.is_array()) return;
  for (const Json& condition : conditions) {
    if (GetText(condition, "status") != "True") continue;
    const std::string type = GetText(condition, "type");
    if (type == "Succeeded") status->phase = job::JobPhase::kSucceeded;
    if (type == "Suspended") status->phase = job::JobPhase::kSuspended;
    if (type != "Failed") continue;
    status->phase = job::JobPhase::kFailed;
    status->failure_message = GetText(condition, "message");
  }
}

// What the job was told to do, and no operator has written that it does: "suspend"; "" for nothing.
std::string FindOrder(const Json& object, const job::JobStatus& status) {
  const Json& annotations = Child(Child(object, "metadata"), "annotations");
  const bool is_told = annotations.is_object() && annotations.contains("muster/stop");
  const bool is_ending = status.ended() || status.phase == job::JobPhase::kFailing;
  if (is_told && !is_ending) return "stop";
  const bool suspend = Child(Child(Child(object, "spec"), "runPolicy"), "suspend") == true;
  const bool is_seen = Child(Child(object, "status"), "muster").is_object();
  if (suspend && is_seen && status.phase == job::JobPhase::kActive) return "suspend";
  // One that still ends its tasks resumes when these are gone.
  const bool is_still = std::none_of(status.tasks.begin(), status.tasks.end(),
                                     [](const auto& task) { return task.second.live(); });
  const bool is_suspended = status.phase == job::JobPhase::kSuspended && is_still;
  return is_suspended && !suspend ? "resume" : "";
}

// Why nobody answers for the job; "" if the operator does.
std::string FindSilence(const Json& object, const job::JobStatus& status, double now) {
  const Json& metadata = Child(object, "metadata");
  const Json& own = Child(Child(object, "status"), "muster");
  if (own.is_null() && Child(Child(object, "status"), "conditions").is_array()) {
    return "its status has nothing of Muster's: another operator runs it, or the definition of "
           "TFJob is not Muster's (kubectl apply -f deploy/kubernetes/crd.yaml)";
  }
  const bool is_new = now < ParseTime(GetText(metadata, "creationTimestamp")) + kNewSeconds;
  if (own.is_null() && !is_new) {
    return StrCat("no operator has looked at it: muster operator must run, and see the namespace ",
                  GetNamespace(object));
  }
  const std::string order = FindOrder(object, status);
  if (order.empty()) return "";
  return StrCat("it was told to ", order,
                ", and no operator has done that yet: muster operator must run, and see the "
                "namespace ",
                GetNamespace(object));
}

// What of the job's settings does not have the effect that it seems to have, such as a number of
// workers that it may not have; and problems that are no task's.
Json GetNotes(const TrainingJob& job, const Json& problems) {
  Json notes = job.notes;
  if (!problems.is_object()) return notes;
  for (const auto& [who, problem] : problems.items()) {
    if (!job::ParseTaskName(who) && problem.is_string()) notes.push_back(problem);
  }
  return notes;
}

void AddPodFacts(const std::map<job::TaskId, PodInfo>& pods, const Json& problems, Json* job) {
  for (Json& task : (*job)["tasks"]) {
    const std::string name = GetText(task, "task");
    const auto id = job::ParseTaskName(name);
    const auto pod = id ? pods.find(*id) : pods.end();
    std::string problem = GetText(problems, name);
    if (pod != pods.end()) {
      if (!pod->second.node.empty()) task["place"] = pod->second.node;
      if (!pod->second.record.problem.empty()) problem = pod->second.record.problem;
    }
    const std::string phase = GetText(task, "phase");
    const bool may_start = phase == "waiting" || phase == "starting" || phase == "running";
    if (!problem.empty() && may_start) task["problem"] = AddAdvice(problem);
  }
}

}  // namespace

std::string AddAdvice(const std::string& problem) {
  std::string line(WithoutFullStop(problem));
  std::replace(line.begin(), line.end(), '\n', ' ');
  const std::string lower = absl::AsciiStrToLower(line);
  for (const Advice& advice : kAdvice) {
    if (lower.find(advice.part) == std::string::npos) continue;
    return StrCat(line, " (", advice.text, ")");
  }
  return line;
}

std::map<job::TaskId, PodInfo> ReadPods(const Json& job, const std::vector<Json>& pods) {
  std::map<job::TaskId, PodInfo> found;
  for (const Json& pod : pods) {
    const auto owner = FindOwner(pod);
    const auto record = ReadPod(pod);
    if (!owner || owner->uid != GetUid(job) || !record) continue;
    const auto known = found.find(record->task);
    if (known != found.end() && known->second.record.version > record->version) continue;
    found[record->task] = {.name = GetName(pod),
                           .container = FindContainerName(pod),
                           .node = GetText(Child(pod, "spec"), "nodeName"),
                           .record = *record};
  }
  return found;
}

Json DescribeTfJob(const Json& object, const std::map<job::TaskId, PodInfo>& pods, double now) {
  auto read = ReadTrainingJob(object);
  TrainingJob job = read.ok() ? *read : TrainingJob();
  job.spec.name = GetName(object);
  job.spec.name_space = GetNamespace(object);
  auto state = ReadState(object);
  job::JobStatus status = state.ok() ? *state : job::JobStatus();
  const Json& written = Child(object, "status");
  if (Child(written, "muster").is_null()) {
    SetPhaseByConditions(Child(written, "conditions"), &status);
    status.start_time = ParseTime(GetText(written, "startTime"));
    status.completion_time = ParseTime(GetText(written, "completionTime"));
  }
  AddWaitingTasks(job.spec, &status);
  Json described = control::DescribeJob(job.spec, status, MakeState(job.spec, status));
  described["namespace"] = job.spec.name_space;
  described["created"] = ParseTime(GetText(Child(object, "metadata"), "creationTimestamp"));
  // A job that was refused, or was suspended from its beginning, has not been started by anybody.
  if (status.start_time == 0) described["start_time"] = described["created"];
  const Json& problems = Child(Child(written, "muster"), "problems");
  const std::string settings_problem = GetText(problems, kSettingsProblem);
  if (!status.ended()) described["notes"] = GetNotes(job, problems);
  if (!state.ok()) {
    described["coordinator"] = ToStd(state.status().message());
  } else if (!read.ok() && !status.ended() && settings_problem.empty()) {
    described["coordinator"] = ToStd(read.status().message());
  } else if (std::string silence = FindSilence(object, status, now);
             !silence.empty() && !status.ended()) {
    described["coordinator"] = std::move(silence);
  }
  AddPodFacts(pods, problems, &described);
  return described;
}

std::vector<std::string> ListRunningTasks(const std::map<job::TaskId, PodInfo>& pods) {
  std::vector<std::string> running;
  for (const auto& [task, pod] : pods) {
    const bool has_ended = pod.record.phase == job::TaskObservation::Phase::kEnded;
    if (!has_ended && !pod.record.deleting) running.push_back(job::TaskName(task));
  }
  return running;
}

void DescribeRest(const std::map<job::TaskId, PodInfo>& pods, Json* described) {
  const auto running = ListRunningTasks(pods);
  if (running.empty()) return;
  (*described)["notes"].push_back(StrCat("the pods of ", absl::StrJoin(running, ", "),
                                         " still run, since cleanPodPolicy is None: muster stop ",
                                         GetText(*described, "name"), " deletes them"));
}

void DescribeSilence(const std::string& silence,
                     const std::optional<std::map<job::TaskId, PodInfo>>& pods, Json* described) {
  (*described)["coordinator"] = silence;
  if (!pods) return;
  for (Json& task : (*described)["tasks"]) {
    const auto id = job::ParseTaskName(GetText(task, "task"));
    if (!id || GetText(task, "phase") != "running") continue;
    const auto pod = pods->find(*id);
    if (pod == pods->end()) {
      task["problem"] = "its pod is gone, and no operator makes another one";
    } else if (pod->second.record.phase == job::TaskObservation::Phase::kEnded) {
      task["problem"] = StrCat("its pod has ended (", pod->second.record.end.Describe(),
                               "), and no operator has seen that");
    }
  }
}

std::optional<std::string> DescribeLostPod(const Json& job, const Json& described,
                                           const std::string& task) {
  std::string phase, reason;
  for (const Json& each : Child(described, "tasks")) {
    if (GetText(each, "task") != task) continue;
    phase = GetText(each, "phase");
    reason = WithoutFullStop(GetText(each, "stop_reason"));
  }
  const bool is_suspended = GetText(described, "phase") == "suspended" && phase == "waiting";
  if (is_suspended) return "the job is suspended, which deletes its pods";
  if (phase != "succeeded" && phase != "failed" && phase != "stopped") return std::nullopt;
  const std::string message(WithoutFullStop(GetText(described, "message")));
  const std::string policy = GetText(Child(Child(job, "spec"), "runPolicy"), "cleanPodPolicy");
  if (!reason.empty() && reason != message) {
    reason = StrCat("it was deleted when it still ran: ", reason,
                    message.empty() ? "" : StrCat(": ", message));
  } else if (!reason.empty()) {
    reason = StrCat("it was deleted when it still ran: ", reason);
  } else if (policy == "All") {
    reason = "the job has cleanPodPolicy All, which deletes them all when it ends";
  } else if (phase == "succeeded" && GetText(described, "phase") == "failed") {
    // A pod that was told to end and ended well in its grace period has no other reason.
    reason = StrCat("it was deleted when the job ended, or later: ", message);
  } else {
    reason = "somebody has deleted it";
  }
  std::vector<std::string> lines;
  for (const Json& failure : Child(described, "failures")) {
    if (GetText(failure, "task") != task) continue;
    for (const Json& line : Child(failure, "last_lines")) {
      std::string text = line.get<std::string>();
      if (lines.empty() || lines.back() != text) lines.push_back(std::move(text));
    }
  }
  if (lines.empty()) return reason;
  return StrCat(reason, "; the job's status keeps the last line of a run that failed: '",
                absl::StrJoin(lines, "', '"), "'");
}

}  // namespace muster::launch::kubernetes
