#include "muster/cli/jobs/yarn_flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_follow.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"
#include "muster/job/pod_template.h"
#include "muster/launch/yarn/submission.h"
#include "muster/launch/yarn/yarn_place.h"

namespace muster::cli {
namespace {

constexpr const char* kYarnFlags[] = {"--queue",  "--node-label", "--placement", "--image",
                                      "--keytab", "--memory",     "--cores",     "--gang-timeout"};

// VALUE for all types of task (""), ROLE=VALUE for one.
absl::StatusOr<std::map<std::string, std::string>> ParseByRole(
    const char* flag, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> by_role;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    std::string role;
    if (equals != std::string::npos) {
      const auto type = job::ParseTaskType(text.substr(0, equals));
      if (!type) {
        return absl::InvalidArgumentError(
            StrCat(flag, " ", text, ": '", text.substr(0, equals),
                   "' is no role: chief, evaluator, master, ps or worker"));
      }
      role = job::TypeName(*type);
    }
    const size_t begin = equals == std::string::npos ? 0 : equals + 1;
    if (!by_role.emplace(role, text.substr(begin)).second || begin == text.size()) {
      return absl::InvalidArgumentError(
          StrCat(flag, " ", text, ": give it once for a role, or once for all"));
    }
  }
  return by_role;
}

absl::StatusOr<launch::yarn::SubmitOptions> MakeOptions(const YarnFlags& flags) {
  launch::yarn::SubmitOptions options = {.queue = flags.queue,
                                         .placement = flags.placement,
                                         .keytab = flags.keytab,
                                         .cores = flags.cores,
                                         .from = "."};
  MUSTER_ASSIGN_OR_RETURN(options.labels, ParseByRole("--node-label", flags.node_labels));
  MUSTER_ASSIGN_OR_RETURN(options.images, ParseByRole("--image", flags.images));
  options.folders = flags.folders;
  MUSTER_ASSIGN_OR_RETURN(const double bytes, job::ParseQuantity(flags.memory));
  options.memory_bytes = static_cast<int64_t>(bytes);
  MUSTER_ASSIGN_OR_RETURN(options.gang_seconds, job::ParseDuration(flags.gang_timeout));
  MUSTER_ASSIGN_OR_RETURN(options.program, OwnProgram());
  return options;
}

}  // namespace

void AddYarnFlags(CLI::App& verb, YarnFlags* flags) {
  CLI::Option* const on = verb.get_option("--on");
  verb.add_option("--queue", flags->queue, "YARN's queue (default: the cluster's for the user)")
      ->needs(on);
  verb.add_option(
          "--node-label", flags->node_labels,
          "LABEL or ROLE=LABEL: the label of the YARN nodes that the job, or its tasks of a "
          "role, run on (default: the queue's); may be repeated")
      ->allow_extra_args(false)
      ->needs(on)
      ->type_name("LABEL");
  verb.add_option("--placement", flags->placement,
                  "spread: as many of YARN's tasks on each host as on the others; together: on few "
                  "hosts (default: wherever YARN likes)")
      ->needs(on)
      ->check(CLI::IsMember({"spread", "together"}));
  verb.add_option("--image", flags->images,
                  "On Kubernetes, the image of the pods: one that has muster; on YARN, IMAGE or "
                  "ROLE=IMAGE: the image in which nodes with Docker run the tasks; may be repeated "
                  "there")
      ->allow_extra_args(false)
      ->needs(on)
      ->type_name("IMAGE");
  verb.add_option(
          "--keytab", flags->keytab,
          "A keytab, with which a job on a secure Hadoop gets tickets itself: for jobs that "
          "run longer than delegation tokens are valid (seven days)")
      ->needs(on)
      ->type_name("FILE");
  verb.add_option("--memory", flags->memory,
                  "Memory of each task whose template limits none, such as 4Gi: YARN ends a task "
                  "that takes more")
      ->needs(on)
      ->check([](const std::string& text) {
        const auto bytes = job::ParseQuantity(text);
        return bytes.ok() && *bytes >= 1 ? std::string() : StrCat("'", text, "' is no size");
      })
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("--cores", flags->cores, "Cores of each task whose template limits none")
      ->needs(on)
      ->check(CLI::Range(0.01, 4096.0))
      ->capture_default_str();
  verb.add_option("--gang-timeout", flags->gang_timeout,
                  "How long tasks keep YARN's containers while others of the job get none: then "
                  "all are given back and asked for again later; 0: without an end")
      ->needs(on)
      ->check([](const std::string& text) {
        const auto seconds = job::ParseDuration(text);
        return seconds.ok() ? std::string() : std::string(ToStd(seconds.status().message()));
      })
      ->type_name("DURATION")
      ->capture_default_str();
  Group(verb, kCluster,
        {"--queue", "--node-label", "--placement", "--image", "--keytab", "--memory", "--cores",
         "--gang-timeout"});
  for (const char* const name : kYarnFlags) flags->options.push_back(verb.get_option(name));
}

void RefuseYarnFlags(const YarnFlags& flags, const std::vector<std::string>& used) {
  for (const CLI::Option* const option : flags.options) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(used, name) != used.end()) continue;
    throw CLI::ValidationError(
        name,
        "is for --on yarn alone; what a pod may use and where it runs is in its pod "
        "template: the job file's, or --pod-template");
  }
}

std::vector<std::string> GetYarnFlagNames() {
  return {std::begin(kYarnFlags), std::end(kYarnFlags)};
}

absl::Status CheckYarnPath(const char* flag, const std::string& path) {
  if (path.starts_with('/') || !io::PathScheme(path).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(flag, " '", path,
             "': with --on yarn give an hdfs:// path, or one that all nodes have, which begins "
             "with /"));
}

absl::Status CheckYarnData(io::FileSystem& files, const char* flag,
                           const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    MUSTER_RETURN_IF_ERROR(CheckYarnPath(flag, pattern));
    if (!io::PathScheme(pattern).ends_with("hdfs")) continue;
    MUSTER_RETURN_IF_ERROR(Annotate(io::Glob(files, pattern).status(), flag));
  }
  return absl::OkStatus();
}

namespace {

// Tasks read Parquet by the Python of this command's environment, unless theirs names another one.
void PassParquetPython(job::JobSpec* spec) {
  const char* const python = std::getenv(kParquetPythonVariable);
  if (python == nullptr || *python == '\0') return;
  for (auto& [type, replica] : spec->replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    const bool is_given =
        process.ok() && std::ranges::any_of(process->env, [](const auto& variable) {
          return variable.first == kParquetPythonVariable;
        });
    if (!is_given) job::SetEnv(kParquetPythonVariable, python, &replica.pod_template);
  }
}

}  // namespace

absl::Status SubmitToYarn(const JobRequest& request, const YarnFlags& flags) {
  for (const std::string& note : request.notes) SayOfJob(note);
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto config, launch::yarn::ReadYarnConfig(*files));
  MUSTER_ASSIGN_OR_RETURN(const auto options, MakeOptions(flags));
  const std::string& name = request.spec.name;
  MUSTER_RETURN_IF_ERROR(FreeName(name));
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  MUSTER_ASSIGN_OR_RETURN(const auto folder, control::MakeJobFolder(jobs, name));
  job::JobSpec spec = request.spec;
  PassParquetPython(&spec);
  const auto record = launch::yarn::SubmitJob(spec, request.options, options, config, folder);
  if (!record.ok()) {
    (void)files->RemoveAll(folder.path);  // the first error counts
    return record.status();
  }
  SayOfJob(StrCat("job ", name, " is ", record->id, " of ", record->url));
  return control::WritePlaceRecord(folder, *record);
}

absl::Status SubmitToYarnAndFollow(const JobRequest& request, const YarnFlags& flags, bool detach) {
  MUSTER_RETURN_IF_ERROR(SubmitToYarn(request, flags));
  const std::string& name = request.spec.name;
  if (!detach) return FollowByName(name, request.spec, stdout);
  std::printf("%s\n", name.c_str());
  SayNextSteps({StrCat("muster status ", name, " --watch"), StrCat("muster logs -f ", name),
                StrCat("muster stop ", name)});
  return absl::OkStatus();
}

OpenedPlace OpenYarn(const control::JobFolder& folder, const control::PlaceRecord& record) {
  const auto files = files::OpenFileSystems();
  // Its files are found by this process's configuration, like all paths.
  if (files::HadoopConfigFolder().empty()) setenv("HADOOP_CONF_DIR", record.config.c_str(), 0);
  MUSTER_ASSIGN_OR_RETURN(const auto config, launch::yarn::ReadYarnConfig(*files));
  return launch::yarn::YarnPlace::Open(folder, record, config);
}

OpenedPlace OpenOnYarn(const std::string& name) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto config, launch::yarn::ReadYarnConfig(*files));
  MUSTER_ASSIGN_OR_RETURN(const auto client, launch::yarn::YarnClient::New(config));
  MUSTER_ASSIGN_OR_RETURN(const auto all, client->List());
  for (const launch::yarn::Application& app : all) {
    if (app.id != name && app.name != name) continue;
    if (const auto folder = FindJob(app.name); folder.ok()) {
      MUSTER_ASSIGN_OR_RETURN(const auto record, control::ReadPlaceRecord(*folder));
      if (record.id == app.id) return OpenYarn(*folder, record);
    }
    MUSTER_RETURN_IF_ERROR(FreeName(app.name));
    MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
    MUSTER_ASSIGN_OR_RETURN(const auto folder, control::MakeJobFolder(jobs, app.name));
    const auto record = launch::yarn::FetchRecord(app.id, config, *client, folder);
    if (!record.ok()) {
      (void)files->RemoveAll(folder.path);  // the first error counts
      return record.status();
    }
    MUSTER_RETURN_IF_ERROR(control::WritePlaceRecord(folder, *record));
    return OpenYarn(folder, *record);
  }
  return absl::NotFoundError(StrCat("the ResourceManager at ", client->url(), " has no job ", name,
                                    " of the user ", config.user));
}

absl::StatusOr<std::vector<formats::Json>> DescribeAllOnYarn() {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto config, launch::yarn::ReadYarnConfig(*files));
  MUSTER_ASSIGN_OR_RETURN(const auto client, launch::yarn::YarnClient::New(config));
  MUSTER_ASSIGN_OR_RETURN(const auto all, client->List());
  std::vector<formats::Json> described;
  for (const launch::yarn::Application& app : all) described.push_back(launch::yarn::Describe(app));
  return described;
}

}  // namespace muster::cli
