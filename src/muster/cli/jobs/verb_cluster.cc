#include <poll.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_follow.h"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/cli/jobs/where_flags.h"
#include "muster/cli/jobs/yarn_flags.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr int kServerLookMillis = 200;
// Serves until it is ended. The number in MUSTER_STEP_FILE says that it listens. Its arguments are
// the task's type and index, and NAME=HOSTS of each type of the cluster.
constexpr char kServer[] =
    "import os, sys\n"
    "import tensorflow as tf\n"
    "cluster = dict(word.split('=') for word in sys.argv[3:])\n"
    "cluster = dict((name, hosts.split(',')) for name, hosts in cluster.items() if hosts)\n"
    "kind = getattr(tf.distribute, 'Server', None) or tf.train.Server\n"
    "server = kind(cluster, job_name=sys.argv[1], task_index=int(sys.argv[2]))\n"
    "with open(os.environ['MUSTER_STEP_FILE'], 'w') as file:\n"
    "    file.write('1')\n"
    "server.join()\n";

struct LaunchFlags {
  JobFlags job;
  std::string on, python = "python3";
  YarnFlags yarn;
};

struct ClusterSpecFlags {
  std::string job;
  WhereFlags where;
};

// {"ps":["host:port"],"worker":[...]}. FAILED_PRECONDITION while a task does not run.
absl::StatusOr<std::string> PrintCluster(const std::string& name, const Json& job) {
  JsonFields fields(job, "job");
  Json cluster = Json::object();
  for (const Json& each : fields.List("tasks")) {
    JsonFields task(each, "task");
    const auto id = job::ParseTaskName(task.Text("task"));
    if (!id || id->type == job::TaskType::kEvaluator) continue;
    const std::string phase = task.Text("phase"), address = task.Text("address");
    if (phase != "running" || address.empty()) {
      return absl::FailedPreconditionError(
          StrCat("the job ", name, " has no cluster now: ", task.Text("task"), " is ", phase,
                 phase == "running" ? " without an address" : ""));
    }
    cluster[std::string(job::TypeName(id->type))].push_back(address);
  }
  if (cluster.empty()) {
    return absl::FailedPreconditionError(StrCat("the job ", name, " has no tasks yet"));
  }
  return formats::PrintJson(cluster);
}

bool AllListen(const Json& job) {
  JsonFields fields(job, "job");
  for (const Json& each : fields.List("tasks")) {
    if (!each.contains("step")) return false;
  }
  return true;
}

absl::StatusOr<std::string> WaitForServers(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(name));
  const InterruptScope interrupt;
  std::string told;
  while (!InterruptScope::requested()) {
    const auto job = place->Describe();
    const bool may_come =
        absl::IsUnavailable(job.status()) || absl::IsDeadlineExceeded(job.status());
    if (!job.ok() && !may_come) return job.status();
    if (!job.ok() && told != job.status().message()) {
      told = std::string(job.status().message());
      SayOfJob(told);
    }
    if (job.ok() && HasEnded(*job)) {
      MUSTER_RETURN_IF_ERROR(ReportEnd(*job));
      return absl::AbortedError(StrCat("the servers of ", name, " have ended by themselves"));
    }
    if (job.ok() && AllListen(*job)) {
      auto cluster = PrintCluster(name, *job);
      if (cluster.ok()) return cluster;
    }
    poll(nullptr, 0, kServerLookMillis);
  }
  return absl::CancelledError(StrCat("the servers of ", name, " continue to start: muster cluster ",
                                     name, " says where they are, muster stop ", name,
                                     " ends them"));
}

absl::Status Launch(LaunchFlags& flags) {
  JobFlags& job = flags.job;
  if (!flags.on.empty()) job.place = kYarnPlace;
  job.typed = {"servers"};
  job.command = {flags.python,           "-c", kServer, "{type}", "{index}", "ps={ps_hosts}",
                 "worker={worker_hosts}"};
  MUSTER_ASSIGN_OR_RETURN(const auto local, MakeLocalOptions(job));
  MUSTER_ASSIGN_OR_RETURN(const JobRequest request, MakeRequest(job));
  const std::string& name = request.spec.name;
  if (flags.on.empty()) {
    MUSTER_RETURN_IF_ERROR(StartJob(request, local, /*detach=*/true, stderr));
  } else {
    MUSTER_RETURN_IF_ERROR(SubmitToYarn(request, flags.yarn));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster, WaitForServers(name));
  std::printf("%s\n", cluster.c_str());
  SayNextSteps({StrCat("muster cluster ", name), StrCat("muster stop ", name)});
  return absl::OkStatus();
}

absl::Status ShowCluster(const ClusterSpecFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJob(flags.job, flags.where));
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  MUSTER_ASSIGN_OR_RETURN(const std::string cluster, PrintCluster(flags.job, job));
  std::printf("%s\n", cluster.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddLaunch(CLI::App& app) {
  const auto flags = std::make_shared<LaunchFlags>();
  flags->job.workers = 1;
  CLI::App* verb =
      app.add_subcommand("launch", "Start TensorFlow servers for a client outside of the job");
  verb->footer(
      "It prints the ClusterSpec once all servers listen; muster cluster prints it again, muster "
      "stop ends them. Servers of TensorFlow ask nobody who he is: whoever reaches their ports can "
      "run programs in them.\n"
      "Examples:\n"
      "  muster launch --num_ps 1 --num_worker 2 --python venv/bin/python\n"
      "  muster launch --on yarn --num_ps 2 --num_worker 2 --archive env.zip#env \\\n"
      "      --python env/bin/python");
  verb->add_option("--workers,--num_worker", flags->job.workers, "Servers of the job worker")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--ps,--num_ps", flags->job.ps, "Servers of the job ps (default: none)")
      ->check(CLI::Range(0, 10000));
  verb->add_option("--python", flags->python, "The Python that has TensorFlow")
      ->type_name("PROGRAM")
      ->capture_default_str();
  verb->add_option("--name,--job", flags->job.name, "The job's name (default: servers-...)")
      ->check(NewJobNameError);
  verb->add_option("--restarts", flags->job.restarts,
                   "How often a server is started again within an hour (default: 3)")
      ->check(CLI::Range(0, 1000));
  verb->add_option("--env", flags->job.env, "NAME=VALUE: of each server's environment")
      ->allow_extra_args(false);
  verb->add_option("--archive", flags->job.archives,
                   "PATH#NAME: a .zip or .tar(.gz) that each server finds unpacked as NAME")
      ->allow_extra_args(false);
  verb->add_option("--on", flags->on, "Where they run instead of here: yarn (docs/yarn.md)")
      ->check(CLI::IsMember({kYarnKind}));
  Group(*verb, kCluster, {"--on"});
  AddYarnFlags(*verb, &flags->yarn);
  verb->callback([flags] { FailUnlessOk(Launch(*flags)); });
}

void AddCluster(CLI::App& app) {
  const auto flags = std::make_shared<ClusterSpecFlags>();
  CLI::App* verb = app.add_subcommand("cluster", "Print where a job's tasks are, as a ClusterSpec");
  verb->footer(
      "Examples:\n"
      "  muster cluster servers-5f3a1\n"
      "  muster cluster application_1795224297403_0009 --on yarn");
  verb->add_option("job", flags->job, "A job, as muster list shows it")
      ->required()
      ->type_name("JOB");
  AddWhereFlags(*verb, &flags->where);
  verb->callback([flags] { FailUnlessOk(ShowCluster(*flags)); });
}

}  // namespace muster::cli
