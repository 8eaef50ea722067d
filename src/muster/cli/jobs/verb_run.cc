
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/dry_run.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/cli/jobs/yarn_flags.h"

namespace muster::cli {
namespace {

struct RunFlags {
  JobFlags job;
  std::string on;
  YarnFlags yarn;
  bool detach = false, dry_run = false;
};

absl::Status ShowTasks(const JobRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const std::string tasks, DescribeTasks(request));
  std::printf("job %s, %d tasks; nothing is started (--dry-run)\n", request.spec.name.c_str(),
              request.spec.total());
  for (const std::string& note : request.notes) std::printf("%s\n", note.c_str());
  std::printf("%s", tasks.c_str());
  return absl::OkStatus();
}

absl::Status RunJob(RunFlags& flags) {
  if (!flags.on.empty()) flags.job.place = kYarnPlace;
  const auto local = MakeLocalOptions(flags.job);
  if (!local.ok()) {
    throw CLI::ValidationError("--listen", std::string(ToStd(local.status().message())));
  }
  const absl::Status use = CheckJobFlags(flags.job);
  auto request = use.ok() ? MakeRequest(flags.job) : use;
  if (!use.ok() || (absl::IsInvalidArgument(request.status()) && flags.job.file.empty())) {
    throw CLI::ValidationError("run", std::string(ToStd(request.status().message())));
  }
  MUSTER_RETURN_IF_ERROR(request.status());
  if (flags.dry_run) return ShowTasks(*request);
  if (!flags.on.empty()) return SubmitToYarnAndFollow(*request, flags.yarn, flags.detach);
  MUSTER_RETURN_IF_ERROR(StartJob(*request, *local, flags.detach));
  const std::string& name = request->spec.name;
  if (flags.detach) {
    SayNextSteps({StrCat("muster status ", name, " --watch"), StrCat("muster logs -f ", name),
                  StrCat("muster stop ", name)});
  } else {
    SayNextSteps({StrCat("muster logs ", name), StrCat("muster rm ", name)});
  }
  return absl::OkStatus();
}

}  // namespace

void AddRun(CLI::App& app, const std::vector<std::string>& command) {
  const auto flags = std::make_shared<RunFlags>();
  flags->job.command = command;
  CLI::App* verb = app.add_subcommand(
      "run", "Run a distributed job on this machine: a TFJob file, or a command");
  verb->footer(
      "Examples:\n"
      "  muster run --workers 2 -- python train.py\n"
      "  muster run --chief --workers 2 --ps 1 --evaluator -- python main.py\n"
      "  muster run --ps 1 --workers 2 -- python old.py --ps_hosts={ps_hosts} \\\n"
      "      --worker_hosts={worker_hosts} --job_name={type} --task_index={index}\n"
      "  muster run job.yaml --volume data=/home/me/data --env KEY=value\n"
      "  muster run job.yaml --path /app=src --gpus 0 --dry-run -- python main.py\n"
      "  muster run job.yaml --detach\n"
      "  muster run --on yarn --workers 2 --archive env.zip#env -- env/bin/python t.py");
  AddJobFlags(*verb, &flags->job);
  CLI::Option* const on =
      verb->add_option("--on", flags->on, "Where the job runs instead: yarn (docs/yarn.md)")
          ->check(CLI::IsMember({kYarnKind}));
  Group(*verb, kCluster, {"--on"});
  for (const char* const name : {"--hosts", "--listen", "--certs", "--isolate", "--metrics-port",
                                 "--volume", "--path", "--share-gpus"}) {
    on->excludes(verb->get_option(name));
  }
  AddYarnFlags(*verb, &flags->yarn);
  verb->add_flag("--detach", flags->detach,
                 "Print the job's name and return: see muster status, logs, stop");
  verb->add_flag("--dry-run", flags->dry_run,
                 "Print each task's command, environment and TF_CONFIG; start nothing");
  verb->callback([flags] { FailUnlessOk(RunJob(*flags)); });
}

}  // namespace muster::cli
