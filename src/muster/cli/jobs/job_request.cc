#include "muster/cli/jobs/job_request.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_programs.h"
#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"
#include "muster/job/manifest.h"
#include "muster/job/pod_template.h"
#include "muster/job/tf_config.h"
#include "muster/job/volumes.h"

namespace muster::cli {
namespace {

constexpr double kFinishSeconds = 60;
constexpr int kDefaultRestarts = 3;
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 20;
constexpr size_t kMaxStem = 24;

std::string CurrentFolder() {
  const std::unique_ptr<char, void (*)(void*)> folder(getcwd(nullptr, 0), std::free);
  return folder == nullptr ? "" : folder.get();
}

// Returns "my-train" for "folder/My_train.py"; "" if there is no letter.
std::string GetLabel(const std::string& word) {
  std::string label;
  for (const char c : io::Basename(word)) {
    if (c == '.') break;
    const bool keeps = std::isalnum(static_cast<unsigned char>(c)) != 0;
    label += keeps ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  while (!label.empty() && std::isalpha(static_cast<unsigned char>(label[0])) == 0) {
    label.erase(0, 1);
  }
  return label.substr(0, kMaxStem);
}

// Returns "train" for "python train.py": as a label, the last of the first two words that has a
// letter.
std::string GetStem(const std::vector<std::string>& command) {
  std::string stem;
  for (size_t i = 0; i < std::min<size_t>(2, command.size()); ++i) {
    if (command[i].empty() || command[i][0] == '-') break;
    const std::string label = GetLabel(command[i]);
    if (!label.empty()) stem = label;
  }
  return stem.empty() ? "job" : stem;
}

// Returns "train-titanic" for "train titanic.yaml".
std::string JoinedLabels(const std::vector<std::string>& words) {
  std::vector<std::string> labels;
  for (const std::string& word : words) {
    std::string label = GetLabel(word);
    if (!label.empty()) labels.push_back(std::move(label));
  }
  return absl::StrJoin(labels, "-");
}

// Returns a name that differs from those of other jobs started at the same time.
std::string NameFor(const std::string& stem) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return absl::StrFormat("%s-%05x%x", stem, (millis / 1000) % 0x100000, getpid() % 4096);
}

absl::StatusOr<job::RestartPolicy> ParsePolicy(const std::string& name) {
  using job::RestartPolicy;
  if (name.empty()) return RestartPolicy::kOnFailure;
  for (const auto policy : {RestartPolicy::kAlways, RestartPolicy::kOnFailure,
                            RestartPolicy::kNever, RestartPolicy::kExitCode}) {
    if (job::RestartPolicyName(policy) == name) return policy;
  }
  return absl::InvalidArgumentError(
      StrCat("--restart-policy ", name, " is unknown (known: Always, OnFailure, Never, ExitCode)"));
}

absl::StatusOr<job::Manifest> FromFile(const JobFlags& flags) {
  const auto files = files::OpenFileSystems();
  const bool is_input = flags.file == "-";
  MUSTER_ASSIGN_OR_RETURN(
      const std::string text,
      io::ReadFile(*files, is_input ? "/dev/stdin" : flags.file, kMaxManifestBytes));
  const std::string name = is_input ? "standard input" : flags.file;
  MUSTER_ASSIGN_OR_RETURN(job::Manifest manifest, job::ParseManifest(text, name));
  if (!flags.name.empty()) manifest.spec.name = flags.name;
  return manifest;
}

absl::Status SetTimeouts(const JobFlags& flags, job::JobSpec* spec) {
  if (!flags.progress_timeout.empty()) {
    MUSTER_ASSIGN_OR_RETURN(spec->progress_timeout_seconds,
                            job::ParseDuration(flags.progress_timeout));
  }
  if (!flags.finish_timeout.empty()) {
    MUSTER_ASSIGN_OR_RETURN(spec->finish_timeout_seconds, job::ParseDuration(flags.finish_timeout));
  }
  if (!spec->finish_timeout_seconds) {
    // Workers of a ParameterServerStrategy serve indefinitely; an evaluator beside them may have
    // work.
    const bool serves = job::ParseExpect(flags.expect).value_or(job::Expect::kAny) ==
                            job::Expect::kParameterServer &&
                        spec->count(job::TaskType::kEvaluator) == 0;
    spec->finish_timeout_seconds = serves ? 0 : kFinishSeconds;
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT for a flag that is not NAME=PATH, that names no volume, or whose path does not
// exist.
absl::Status MapVolumes(const JobFlags& flags, JobRequest* request) {
  const auto fail = [](const absl::Status& status) {
    throw CLI::ValidationError("--volume", std::string(ToStd(status.message())));
  };
  auto places = job::ParseVolumes(flags.volumes);
  if (!places.ok()) fail(places.status());
  const auto files = files::OpenFileSystems();
  const auto exists = [&](const std::string& path) { return files->Stat(path).ok(); };
  for (auto& [name, path] : *places) {
    path = io::JoinPath(request->options.working_directory, path);
    if (!exists(path)) fail(absl::NotFoundError(StrCat(name, ": there is no ", path)));
  }
  const absl::Status status = job::MapVolumes(*places, exists, &request->spec, &request->notes);
  if (absl::IsNotFound(status)) fail(status);
  return status;
}

void SetEnv(const std::string& name, const std::string& value, job::JobSpec* spec) {
  for (auto& [type, replica] : spec->replicas) job::SetEnv(name, value, &replica.pod_template);
}

void SetEnv(const JobFlags& flags, job::JobSpec* spec) {
  for (const std::string& text : flags.env) {
    const size_t equals = text.find('=');
    SetEnv(text.substr(0, equals), text.substr(equals + 1), spec);
  }
}

// Gives the command after "--" to the containers of a job file that have none.
absl::Status SetEntryPoints(const JobFlags& flags, job::JobSpec* spec) {
  if (flags.file.empty() || flags.command.empty()) return absl::OkStatus();
  bool is_used = false;
  for (auto& [type, replica] : spec->replicas) {
    is_used = is_used || !job::HasCommand(replica.pod_template);
    job::SetEntryPoint(flags.command, &replica.pod_template);
  }
  if (is_used) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("every container of ", flags.file,
                                           " has a command, so the command after -- would not "
                                           "run: leave it out"));
}

absl::Status MapPaths(const JobFlags& flags, JobRequest* request) {
  auto paths = job::ParsePaths(flags.paths);
  if (!paths.ok())
    throw CLI::ValidationError("--path", std::string(ToStd(paths.status().message())));
  const auto files = files::OpenFileSystems();
  for (auto& [from, to] : *paths) {
    to = io::JoinPath(request->options.working_directory, to);
    if (!files->Stat(to).ok()) throw CLI::ValidationError("--path", StrCat("there is no ", to));
    request->notes.push_back(StrCat(from, " of the image is ", to));
  }
  job::MapPaths(*paths, &request->spec);
  return absl::OkStatus();
}

void SetGpus(const JobFlags& flags, JobRequest* request) {
  if (flags.gpus < 0) return;
  bool changed = false;
  for (auto& [type, replica] : request->spec.replicas) {
    changed = job::SetGpus(flags.gpus, &replica.pod_template) || changed;
  }
  if (flags.gpus == 0) SetEnv("CUDA_VISIBLE_DEVICES", "", &request->spec);
  if (changed && flags.gpus == 0) {
    request->notes.push_back("limits of nvidia.com/gpu are not used (--gpus 0)");
  }
}

// Returns the model_dir of the first template whose environment has a TF_CONFIG that names one.
std::string FindModelDir(const job::JobSpec& spec) {
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    if (!process.ok()) continue;  // reported when the programs are checked
    for (const auto& [name, value] : process->env) {
      std::string found = name == "TF_CONFIG" ? job::GetModelDir(value) : "";
      if (!found.empty()) return found;
    }
  }
  return "";
}

// Returns FOLDER of a command with --model-dir FOLDER or --model_dir=FOLDER, as the Estimator's
// programs have it.
std::string FindModelDir(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    for (const std::string_view flag : {"--model-dir", "--model_dir"}) {
      std::string found;
      if (command[i] == flag && i + 1 < command.size()) found = command[i + 1];
      if (command[i].starts_with(StrCat(flag, "="))) found = command[i].substr(flag.size() + 1);
      const bool is_same_for_all = found.find('{') == std::string::npos;
      if (!found.empty() && found[0] != '-' && is_same_for_all) return found;
    }
  }
  return "";
}

bool IsOfHdfs(const std::string& path) {
  const std::string_view scheme = io::PathScheme(path);
  return scheme == "hdfs" || scheme == "webhdfs" || scheme == "swebhdfs";
}

// Notes, once for each setting, what the file asks for but the place does not offer.
void AddNotes(const std::string& place, JobRequest* request) {
  std::set<std::string> unused;
  for (const auto& [type, replica] : request->spec.replicas) {
    for (const std::string& field : job::UnusedFields(replica.pod_template)) unused.insert(field);
    const auto process = job::ParseProcess(replica.pod_template);
    const bool has_volumes = process.ok() && !process->volumes.empty();
    if (!place.empty() && has_volumes) unused.insert("volumes (give paths that its machines have)");
  }
  for (const std::string& field : job::UnusedPolicies(request->spec)) unused.insert(field);
  if (unused.empty()) return;
  request->notes.push_back(StrCat("not used on ", place.empty() ? "this machine" : place, ": ",
                                  absl::StrJoin(unused, ", ")));
}

}  // namespace

absl::StatusOr<job::JobSpec> MakeCommandSpec(const JobFlags& flags) {
  job::JobSpec spec;
  const std::string stem = flags.typed.empty() ? GetStem(flags.command) : JoinedLabels(flags.typed);
  spec.name = flags.name.empty() ? NameFor(stem) : flags.name;
  MUSTER_ASSIGN_OR_RETURN(const job::RestartPolicy policy, ParsePolicy(flags.restart_policy));
  const auto add = [&](job::TaskType type, int count) {
    if (count > 0) spec.replicas[type] = {count, policy, job::TemplateFor(flags.command)};
  };
  add(job::TaskType::kChief, flags.chief ? 1 : 0);
  add(job::TaskType::kWorker, flags.workers >= 0 ? flags.workers : flags.chief ? 0 : 1);
  add(job::TaskType::kPs, flags.ps);
  add(job::TaskType::kEvaluator, flags.evaluator ? 1 : 0);
  spec.restart_budget.per_task = flags.restarts.value_or(kDefaultRestarts);
  spec.all_workers = !flags.chief;
  spec.needs_evaluator = flags.evaluator;
  spec.fail_fast = true;
  // On hosts a task may be restarted on another host, where the others do not know it.
  const bool gang = flags.restart_scope.empty()
                        ? flags.ps == 0 || !flags.hosts.empty() || !flags.place.empty()
                        : flags.restart_scope == "gang";
  spec.restart_scope = gang ? job::RestartScope::kGang : job::RestartScope::kTask;
  return spec;
}

absl::StatusOr<launch::local::LocalJobOptions> MakeLocalOptions(const JobFlags& flags) {
  launch::local::LocalJobOptions local;
  local.certificates = flags.certificates;
  local.share_gpus = flags.share_gpus;
  local.isolate = flags.isolate;
  local.metrics_port = flags.metrics_port;
  const bool tls = !local.certificates.empty();
  const std::string listen = flags.listen.empty() ? "127.0.0.1" : flags.listen;
  MUSTER_ASSIGN_OR_RETURN(local.listen,
                          control::ParseListenPlace(listen, tls || !flags.hosts.empty()));
  return local;
}

absl::Status CheckJobFlags(const JobFlags& flags) {
  if (flags.file.empty() && flags.command.empty()) {
    return absl::InvalidArgumentError(
        "there is nothing to run: give a job file, or roles and a command, as in muster run "
        "--workers 2 -- python train.py");
  }
  const bool names_roles = flags.chief || flags.evaluator || flags.workers >= 0 || flags.ps > 0;
  if (!flags.file.empty() && names_roles) {
    return absl::InvalidArgumentError(
        "a job file says how many chief, workers, ps and evaluators there are: leave these flags "
        "out, or give a command after -- instead of the file");
  }
  const bool names_restarts =
      flags.restarts || !flags.restart_policy.empty() || !flags.restart_scope.empty();
  if (!flags.file.empty() && names_restarts) {
    return absl::InvalidArgumentError(
        "a job file says what is restarted (restartPolicy, backoffLimit, the annotation "
        "muster/restartBudget): leave --restarts, --restart-policy and --restart-scope out");
  }
  MUSTER_RETURN_IF_ERROR(ParsePolicy(flags.restart_policy).status());
  MUSTER_RETURN_IF_ERROR(job::ParseExpect(flags.expect).status());
  job::JobSpec ignored;
  return SetTimeouts(flags, &ignored);
}

absl::StatusOr<JobRequest> MakeRequest(const JobFlags& flags) {
  JobRequest request;
  if (!flags.file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(job::Manifest manifest, FromFile(flags));
    request.spec = std::move(manifest.spec);
    request.notes = std::move(manifest.notes);
  } else {
    MUSTER_ASSIGN_OR_RETURN(request.spec, MakeCommandSpec(flags));
  }
  const auto append = [](const std::vector<std::string>& more, std::vector<std::string>* to) {
    to->insert(to->end(), more.begin(), more.end());
  };
  append(flags.files, &request.spec.files);
  append(flags.archives, &request.spec.archives);
  MUSTER_RETURN_IF_ERROR(SetTimeouts(flags, &request.spec));
  std::string& model_dir = request.spec.model_dir;
  if (!flags.model_dir.empty() && (!flags.place.empty() || IsOfHdfs(flags.model_dir))) {
    model_dir = flags.model_dir;
  } else if (!flags.model_dir.empty()) {
    MUSTER_ASSIGN_OR_RETURN(model_dir, io::LocalPath(flags.model_dir));
  }
  if (model_dir.empty()) model_dir = FindModelDir(request.spec);
  // Tasks with staged files run in separate folders.
  const bool is_staged = !request.spec.files.empty() || !request.spec.archives.empty();
  if (model_dir.empty() && !is_staged) model_dir = FindModelDir(flags.command);
  const bool is_local =
      !model_dir.empty() && flags.place.empty() && io::PathScheme(model_dir).empty();
  if (is_local) model_dir = io::JoinPath(CurrentFolder(), model_dir);
  MUSTER_RETURN_IF_ERROR(job::Validate(request.spec, flags.file.empty() ? "job" : flags.file));
  MUSTER_ASSIGN_OR_RETURN(const job::Expect expect, job::ParseExpect(flags.expect));
  MUSTER_RETURN_IF_ERROR(job::CheckCluster(request.spec, expect));
  request.options = {.lease_seconds = flags.lease_seconds,
                     .grace_seconds = flags.grace_seconds,
                     .tf_config = {.evaluator_in_cluster = flags.evaluator_in_cluster,
                                   .master_as_chief = flags.master_as_chief},
                     .working_directory = flags.place.empty() ? CurrentFolder() : ""};
  if (!flags.hosts.empty()) {
    MUSTER_ASSIGN_OR_RETURN(request.hosts.names, launch::ssh::ParseHostNames(flags.hosts));
    MUSTER_ASSIGN_OR_RETURN(request.hosts.command, launch::ssh::ParseSshCommand(flags.ssh));
    request.hosts.listen = flags.listen;
    request.hosts.version = StrCat("muster ", Version());
  }
  if (flags.rendezvous_seconds >= 0) {
    request.options.rendezvous_seconds = flags.rendezvous_seconds;
    SetEnv(job::kRendezvousVariable, StrCat(flags.rendezvous_seconds), &request.spec);
  }
  SetGpus(flags, &request);
  SetEnv(flags, &request.spec);
  MUSTER_RETURN_IF_ERROR(SetEntryPoints(flags, &request.spec));
  if (!flags.place.empty()) {  // its machines have other files
    AddNotes(flags.place, &request);
    return request;
  }
  Refusals refusals;
  refusals.Add(MapVolumes(flags, &request));
  MUSTER_RETURN_IF_ERROR(MapPaths(flags, &request));
  if (request.hosts.names.empty()) {  // each host is asked for its own
    refusals.Add(CheckPrograms(request.spec, request.options.working_directory));
  }
  MUSTER_RETURN_IF_ERROR(refusals.status());
  AddNotes("", &request);
  return request;
}

}  // namespace muster::cli
