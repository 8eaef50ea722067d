#include "muster/cli/train/cluster_train.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_follow.h"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/train/model_text.h"
#include "muster/files/file_systems.h"
#include "muster/formats/yaml_json.h"
#include "muster/io/path_scheme.h"
#include "muster/job/job_name.h"
#include "muster/job/manifest.h"
#include "muster/job/pod_template.h"
#include "muster/launch/kubernetes/place/submission.h"
#include "muster/launch/kubernetes/place/training_template.h"

namespace muster::cli {
namespace {

using formats::Json;
using launch::kubernetes::ClaimMount;

constexpr double kFinishSeconds = 60;              // for the others, after the chief
constexpr char kModelFolder[] = "exported-model";  // of an export, in each task's folder
constexpr uint64_t kMaxTemplateBytes = uint64_t{1} << 20;
// Linux refuses a longer variable, and each replica type of the job has the text.
constexpr size_t kMaxModelBytes = size_t{100} << 10;

bool HasScheme(const std::string& path) { return !io::PathScheme(path).empty(); }

// The template, and where it stands, if there is such a file.
struct TemplateFile {
  Json json = Json::object();
  std::optional<formats::YamlReader> place = {};
};

absl::StatusOr<TemplateFile> ReadTemplate(io::FileSystem& files, const std::string& path) {
  if (path.empty()) return TemplateFile();
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxTemplateBytes));
  MUSTER_ASSIGN_OR_RETURN(const auto root, formats::YamlReader::Parse(text, path));
  Json json = formats::YamlToJson(root);
  MUSTER_RETURN_IF_ERROR(root.status());
  const bool is_pod = json.is_object() && json.contains("spec") && json["spec"].is_object();
  if (is_pod) return TemplateFile{.json = std::move(json), .place = root};
  return absl::InvalidArgumentError(
      StrCat(path, ": is no pod template: a map with 'spec', and 'metadata' if there is any"));
}

// What of the model goes with the job. Neither: it is at a path that the tasks reach.
struct ModelForJob {
  std::string text = {};    // of a model file of this machine
  std::string folder = {};  // of an export of this machine; on YARN alone
  // Vocabulary files, with the paths that the model file names them by; on YARN alone.
  std::vector<std::pair<std::string, std::string>> files = {};

  bool travels() const { return !text.empty() || !folder.empty(); }
};

// How a model file in `folder` names a vocabulary file that lies there or below; "" for a path that
// means the same on all machines.
absl::StatusOr<std::string> NameInTask(const std::string& folder, const std::string& path,
                                       const std::string& model_text) {
  const bool is_absolute = path.starts_with('/') || HasScheme(path);
  if (is_absolute && model_text.find(path) != std::string::npos) return std::string();
  const std::string name = path.substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
  if (StrCat("/", name).find("/../") == std::string::npos) return name;
  return absl::InvalidArgumentError(
      StrCat("its vocabulary file ", path,
             " does not travel with the job: put it into the folder of the model file, or name it "
             "by a path that the tasks reach"));
}

absl::StatusOr<ModelForJob> ReadModelForJob(io::FileSystem& files, const TrainFlags& flags,
                                            const std::string& on) {
  const auto info = files.Stat(flags.spec);
  const bool may_be_on_nodes = flags.spec.starts_with('/') || HasScheme(flags.spec);
  if (!info.ok() && !may_be_on_nodes && on == kYarnKind) return info.status();
  if (!info.ok()) return ModelForJob();
  if (info->is_folder && HasScheme(flags.spec)) return ModelForJob();
  if (info->is_folder && on == kYarnKind) return ModelForJob{.folder = flags.spec};
  if (info->is_folder) {
    return absl::InvalidArgumentError(
        StrCat(flags.spec,
               ": the folder of an exported model does not travel with the job: put it where the "
               "tasks reach it, and give the path that they have it at"));
  }
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, LoadCheckedModel(files, flags));
  ModelForJob for_job;
  MUSTER_ASSIGN_OR_RETURN(for_job.text, ReadModelText(files, flags.spec));
  std::map<std::string, std::string> names;  // by path: columns may share a file
  for (const auto& column : model.features.columns) {
    if (column.words_file.empty()) continue;
    if (on != kYarnKind) {
      return absl::InvalidArgumentError(
          StrCat(flags.spec, ": its vocabulary file ", column.words_file,
                 " does not travel with the job: put both where the tasks reach them, and give "
                 "the path that they have the model file at"));
    }
    const auto name = NameInTask(io::Dirname(flags.spec), column.words_file, for_job.text);
    if (!name.ok()) return Annotate(name.status(), flags.spec);
    if (!name->empty()) names[column.words_file] = *name;
  }
  for_job.files.assign(names.begin(), names.end());
  if (for_job.text.size() <= kMaxModelBytes) return for_job;
  return absl::InvalidArgumentError(StrCat(
      flags.spec, ": has ", for_job.text.size(), " bytes, and ", kMaxModelBytes,
      " travel with a job: put it where the tasks reach it, and give the path that they have "
      "it at"));
}

void CheckPath(const char* flag, const std::string& path, const std::string& on,
               bool is_model_file = false) {
  if (on == kYarnKind) return RefuseUnlessOk(CheckYarnPath(flag, path));
  if (path.starts_with('/') || HasScheme(path)) return;
  throw CLI::ValidationError(
      flag,
      StrCat("'", path,
             "': with --on kubernetes give the path that the pods have it at, "
             "which begins with /",
             is_model_file ? ", or a model file of this machine: there is none of this name" : ""));
}

absl::Status CheckData(io::FileSystem& files, const char* flag,
                       const std::vector<std::string>& patterns, const std::string& on) {
  if (on == kYarnKind) return CheckYarnData(files, flag, patterns);
  for (const std::string& pattern : patterns) CheckPath(flag, pattern, on);
  return absl::OkStatus();
}

absl::Status CheckAllPaths(io::FileSystem& files, const TrainFlags& flags, const std::string& on,
                           bool has_model) {
  if (!has_model) CheckPath("SPEC", flags.spec, on, /*is_model_file=*/true);
  CheckPath("--model-dir", flags.run.model_dir, on);
  MUSTER_RETURN_IF_ERROR(CheckData(files, "--train", flags.data.patterns, on));
  return CheckData(files, "--eval", flags.eval.data.patterns, on);
}

// Of all pods; "": that of the template.
std::string GetPodImage(const std::vector<std::string>& images) {
  if (images.size() > 1) throw CLI::ValidationError("--image", "all pods have the same image");
  return images.empty() ? "" : images[0];
}

void CheckModelFolder(const TrainFlags& flags, const Json& pod_template) {
  const std::string& model_dir = flags.run.model_dir;
  const auto mounts = launch::kubernetes::GetMountPaths(pod_template);
  if (HasScheme(model_dir) || launch::kubernetes::IsBelow(model_dir, mounts)) return;
  throw CLI::ValidationError("--model-dir",
                             StrCat("'", model_dir,
                                    "' lies on no volume of the pods, and would vanish "
                                    "with them: give --volume CLAIM:/PATH that holds it"));
}

// A path that no volume of the pods holds and that this machine does not have is often misspelt.
void TellOfModelPath(const std::string& spec, const Json& pod_template) {
  if (!spec.starts_with('/')) return;
  if (launch::kubernetes::IsBelow(spec, launch::kubernetes::GetMountPaths(pod_template))) return;
  SayOfJob(StrCat("this machine has no file ", spec,
                  " and no volume of the pods holds it: they look for it in their image"));
}

// The command of all tasks: that of this process, without what is of the job alone. `model`: as the
// tasks find it; "": as it was given.
std::vector<std::string> MakeCommand(const TrainFlags& flags, bool is_alone,
                                     const std::string& model,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> taken = {"--workers", "--ps",     "--restarts", "--job",
                                    "--name",    "--volume", "--archive",  "--pod-template"};
  for (std::string& name : GetWhereFlagNames()) taken.push_back(std::move(name));
  for (std::string& name : GetYarnFlagNames()) taken.push_back(std::move(name));
  std::vector<std::string> words = WithoutFlags(arguments, taken);
  std::erase(words, "--detach");
  if (!model.empty()) {
    const auto spec = std::find(words.begin(), words.end(), flags.spec);
    if (spec != words.end()) *spec = model;
  }
  std::vector<std::string> command = {"muster", is_alone ? "train" : "worker"};
  command.insert(command.end(), words.begin(), words.end());
  if (flags.min_workers > 0) command.push_back(StrCat("--min-workers=", flags.min_workers));
  // Pods may wait for a node or an image for any time, and containers in a queue.
  if (!is_alone && flags.rendezvous_seconds < 0) command.emplace_back("--rendezvous-timeout=0");
  return command;
}

absl::StatusOr<job::JobSpec> MakeSpec(const TrainFlags& flags) {
  JobFlags job;
  job.chief = true;
  job.workers = std::max(flags.workers, 1) - 1;
  job.evaluator = flags.eval.evaluator;
  job.ps = flags.ps;
  job.name = flags.job;
  job.typed = {"train", flags.spec};
  job.restarts = flags.restarts;
  job.restart_scope = "task";
  job.command = {"muster"};
  MUSTER_ASSIGN_OR_RETURN(job::JobSpec spec, MakeCommandSpec(job));
  spec.needs_evaluator = false;  // the chief waits for it, and does not succeed without
  if (flags.min_workers > 0) {   // beside the chief
    spec.min_workers = flags.min_workers - 1;
    spec.max_workers = flags.workers - 1;
  }
  spec.finish_timeout_seconds = kFinishSeconds;
  spec.model_dir = flags.run.model_dir;
  return spec;
}

}  // namespace

void AddClusterTrainFlags(CLI::App& verb, ClusterTrainFlags* flags) {
  AddWhereFlags(verb, &flags->where);
  AddYarnFlags(verb, &flags->yarn);
  CLI::Option* const on = verb.get_option("--on");
  verb.add_option("--volume", flags->volumes,
                  "CLAIM:/PATH: a PersistentVolumeClaim and where the pods have it; data and model "
                  "folder are paths of the pods. May be repeated")
      ->allow_extra_args(false)
      ->needs(on)
      ->check([](const std::string& text) {
        const auto mount = launch::kubernetes::ParseClaimMount(text);
        return mount.ok() ? std::string() : std::string(ToStd(mount.status().message()));
      })
      ->type_name("CLAIM:/PATH");
  verb.add_option(
          "--archive", flags->archives,
          "PATH#NAME: a .zip or .tar(.gz) that YARN's nodes unpack into a folder NAME beside "
          "each task, such as a Python with TensorFlow; may be repeated")
      ->allow_extra_args(false)
      ->needs(on)
      ->type_name("PATH#NAME");
  verb.add_option("--pod-template", flags->pod_template,
                  "A pod template (YAML: metadata, spec) with what the pods need besides: "
                  "resources, pull secrets, service account, tolerations")
      ->needs(on)
      ->type_name("FILE");
  verb.add_flag("--detach", flags->detach, "Print the job's name and return")->needs(on);
  Group(verb, kCluster, {"--volume", "--archive", "--pod-template", "--detach"});
}

namespace {

std::string GetModelText() { return StrCat("env:", kModelVariable); }

// A model file goes in an environment variable, as it does to pods; an export's folder is staged.
absl::StatusOr<ClusterTraining> PlanOnYarn(const TrainFlags& flags,
                                           const ClusterTrainFlags& cluster,
                                           const std::vector<std::string>& arguments,
                                           const ModelForJob& model) {
  if (!cluster.volumes.empty() || !cluster.pod_template.empty()) {
    throw CLI::ValidationError("--on yarn",
                               "--volume and --pod-template are for --on kubernetes alone");
  }
  ClusterTraining plan = {.yarn = cluster.yarn};
  MUSTER_ASSIGN_OR_RETURN(plan.spec, MakeSpec(flags));
  const bool is_alone = plan.spec.total() == 1;
  std::string name;
  if (!model.folder.empty()) {
    name = kModelFolder;
    plan.yarn.folders.emplace_back(model.folder, name);
  } else if (!model.text.empty()) {
    name = GetModelText();
    plan.yarn.folders.insert(plan.yarn.folders.end(), model.files.begin(), model.files.end());
  }
  plan.spec.archives = cluster.archives;
  Json pod_template = job::TemplateFor(MakeCommand(flags, is_alone, name, arguments));
  if (!model.text.empty()) job::SetEnv(kModelVariable, model.text, &pod_template);
  for (auto& [type, replica] : plan.spec.replicas) replica.pod_template = pod_template;
  MUSTER_RETURN_IF_ERROR(job::Validate(plan.spec, "job"));
  return plan;
}

absl::StatusOr<ClusterTraining> PlanOnKubernetes(io::FileSystem& files, const TrainFlags& flags,
                                                 const ClusterTrainFlags& cluster,
                                                 const std::vector<std::string>& arguments,
                                                 const ModelForJob& model) {
  if (!cluster.archives.empty()) throw CLI::ValidationError("--archive", "is for --on yarn alone");
  RefuseYarnFlags(cluster.yarn, {"--image"});
  launch::kubernetes::TrainingPod pod = {.image = GetPodImage(cluster.yarn.images),
                                         .model = model.text,
                                         .model_variable = kModelVariable};
  ClusterTraining plan;
  MUSTER_ASSIGN_OR_RETURN(TemplateFile file, ReadTemplate(files, cluster.pod_template));
  pod.pod_template = std::move(file.json);
  plan.pod_template = std::move(file.place);
  for (const std::string& text : cluster.volumes) {
    pod.volumes.push_back(*launch::kubernetes::ParseClaimMount(text));  // it was checked
  }
  MUSTER_ASSIGN_OR_RETURN(plan.spec, MakeSpec(flags));
  RefuseUnlessOk(job::CheckClusterName(plan.spec.name));
  const std::string name = model.text.empty() ? "" : GetModelText();
  pod.command = MakeCommand(flags, plan.spec.total() == 1, name, arguments);
  auto pod_template = launch::kubernetes::MakeTrainingTemplate(pod);
  RefuseUnlessOk(pod_template.status());
  CheckModelFolder(flags, *pod_template);
  if (!model.travels()) TellOfModelPath(flags.spec, *pod_template);
  for (auto& [type, replica] : plan.spec.replicas) replica.pod_template = *pod_template;
  MUSTER_RETURN_IF_ERROR(launch::kubernetes::CheckClaims(pod.volumes, cluster.where.cluster));
  return plan;
}

}  // namespace

absl::StatusOr<ClusterTraining> PlanTraining(const TrainFlags& flags,
                                             const ClusterTrainFlags& cluster,
                                             const std::vector<std::string>& arguments) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const ModelForJob model,
                          ReadModelForJob(*files, flags, cluster.where.on));
  MUSTER_RETURN_IF_ERROR(CheckAllPaths(*files, flags, cluster.where.on, model.travels()));
  return cluster.where.is_yarn() ? PlanOnYarn(flags, cluster, arguments, model)
                                 : PlanOnKubernetes(*files, flags, cluster, arguments, model);
}

absl::Status TrainOnCluster(const TrainFlags& flags, const ClusterTrainFlags& cluster,
                            const std::vector<std::string>& arguments) {
  MUSTER_ASSIGN_OR_RETURN(const ClusterTraining plan, PlanTraining(flags, cluster, arguments));
  if (cluster.where.is_yarn()) {
    JobRequest request;
    request.spec = plan.spec;
    return SubmitToYarnAndFollow(request, plan.yarn, cluster.detach);
  }
  MUSTER_RETURN_IF_ERROR(SubmitToCluster(
      {.job = job::ManifestJson(plan.spec), .places = {.pod_template = plan.pod_template}},
      cluster.where));
  const std::string& name = plan.spec.name;
  if (!cluster.detach) return FollowByName(name, plan.spec, stdout);
  std::printf("%s\n", name.c_str());
  SayNextSteps({StrCat("muster status ", name, " --watch"), StrCat("muster logs -f ", name),
                StrCat("muster stop ", name)});
  return absl::OkStatus();
}

}  // namespace muster::cli
