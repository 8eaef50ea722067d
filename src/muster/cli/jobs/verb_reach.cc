#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/launch/ssh/reach.h"

namespace muster::cli {
namespace {

struct ReachFlags {
  launch::ssh::ReachOptions options;
  std::string task;
};

absl::Status RunReach(const ReachFlags& flags) {
  launch::ssh::ReachOptions options = flags.options;
  const auto task = job::ParseTaskName(flags.task);
  if (!task) return absl::InvalidArgumentError(StrCat("--task ", flags.task, " names no task"));
  options.id.task = *task;
  return launch::ssh::Reach(options);
}

}  // namespace

// The coordinator of a job with --hosts starts it: it is not listed.
void AddReach(CLI::App& app) {
  const auto flags = std::make_shared<ReachFlags>();
  CLI::App* verb =
      app.add_subcommand("reach", "Runs a task's agent on another host (started by muster run)");
  verb->group("");
  verb->add_option("--folder", flags->options.folder.path, "The job's folder")->required();
  verb->add_option("--task", flags->task, "Such as worker-0")->required();
  verb->add_option("--incarnation", flags->options.id.incarnation)->required();
  verb->add_option("--host-number", flags->options.host, "The number of the host in hosts.json")
      ->required();
  verb->add_option("--coordinator-port", flags->options.coordinator_port)->required();
  verb->add_option("--lease", flags->options.lease_seconds,
                   "Lease in seconds, until the coordinator sends another");
  verb->add_option("--port", flags->options.port, "The task's port, if it is free");
  verb->add_flag("--port-required", flags->options.port_required, "Fail if that port is not free");
  verb->add_option("--gpus", flags->options.gpus, "How many the task gets");
  verb->add_option("--first-gpu", flags->options.first_gpu, "The number of the first on its host");
  verb->callback([flags] { FailUnlessOk(RunReach(*flags)); });
}

}  // namespace muster::cli
