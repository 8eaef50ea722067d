#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/control/agent.h"
#include "muster/control/swept_agent.h"
#include "muster/process/proc.h"

namespace muster::cli {
namespace {

struct AgentFlags {
  control::AgentOptions options;
  std::string task;
  std::string bundle;
  bool no_gpus = false, sweep = false, is_swept = false, waits_to_sweep = false;
};

// The arguments of this process without `flag`, for this program.
absl::StatusOr<std::vector<std::string>> GetOwnCommand(const std::string& flag) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  const std::string text = process::ReadSmallFile("/proc/self/cmdline").value_or("");
  std::vector<std::string> words = absl::StrSplit(text, '\0', absl::SkipEmpty());
  if (!words.empty()) words[0] = program;
  std::erase(words, flag);
  return words;
}

absl::Status RunSwept() {
  MUSTER_ASSIGN_OR_RETURN(const auto agent, GetOwnCommand("--swept"));
  std::vector<std::string> sweeper = agent;
  sweeper.emplace_back("--wait-to-sweep");
  MUSTER_ASSIGN_OR_RETURN(const int code, control::RunSweptAgent(agent, std::move(sweeper)));
  std::exit(code);
}

absl::Status RunAgentVerb(const AgentFlags& flags) {
  control::AgentOptions options = flags.options;
  const auto task = job::ParseTaskName(flags.task);
  if (!task) return absl::InvalidArgumentError(StrCat("--task ", flags.task, " names no task"));
  options.id.task = *task;
  if (flags.no_gpus) options.gpus = "";
  if (!flags.bundle.empty()) {
    options.bundle = true;
    options.folder.path = std::filesystem::absolute(flags.bundle).string();
  }
  if (flags.is_swept) return RunSwept();
  if (flags.waits_to_sweep) return control::WaitForAgentAndSweep(options.folder, options.id);
  if (flags.sweep) return control::SweepAgent(options.folder, options.id);
  return control::RunAgent(options);
}

}  // namespace

// Launchers start it, not people: it is not listed.
void AddAgent(CLI::App& app) {
  const auto flags = std::make_shared<AgentFlags>();
  CLI::App* verb = app.add_subcommand("agent", "Takes care of one task (started by muster run)");
  verb->group("");
  auto* place = verb->add_option_group("place")->require_option(1);
  place->add_option("--folder", flags->options.folder.path, "The job's folder");
  place->add_option("--bundle", flags->bundle,
                    "A folder of this machine with the job's token, keys and certificates");
  verb->add_option("--task", flags->task, "Such as worker-0")->required();
  verb->add_option("--incarnation", flags->options.id.incarnation)->required();
  verb->add_option("--coordinator", flags->options.coordinator_url, "The coordinator's URL")
      ->required();
  verb->add_option(
      "--find-coordinator", flags->options.find_coordinator,
      "A file with that URL, read again when the coordinator is silent: it may have moved");
  verb->add_option("--host", flags->options.host, "Where other tasks reach this one")
      ->capture_default_str();
  verb->add_flag("--also-stdout", flags->options.also_stdout,
                 "Write the output of the task to stdout as well as to its log");
  verb->add_option("--slot", flags->options.slot,
                   "The provider's name for the slot that the agent runs in");
  verb->add_flag("--fetch-certificates", flags->options.fetches_certificates,
                 "Ask the coordinator for certificates of this host");
  verb->add_option("--lease", flags->options.lease_seconds,
                   "Lease in seconds, until the coordinator sends another");
  verb->add_option("--port", flags->options.port, "The task's port, if it is free");
  verb->add_flag("--port-required", flags->options.port_required, "Fail if that port is not free");
  verb->add_option("--cpus", flags->options.cpus, "Cores of the task, as 0,1,5")->delimiter(',');
  verb->add_option("--gpus", flags->options.gpus, "CUDA_VISIBLE_DEVICES of the task");
  verb->add_flag("--no-gpus", flags->no_gpus, "The task sees no GPUs");
  verb->add_flag("--sweep", flags->sweep, "End what an agent that has ended left running");
  verb->add_flag(
      "--swept", flags->is_swept,
      "Run the agent in a child, and end what it leaves running (control/swept_agent.h)");
  verb->add_flag("--wait-to-sweep", flags->waits_to_sweep, "Of the process that does that");
  verb->callback([flags] { FailUnlessOk(RunAgentVerb(*flags)); });
}

}  // namespace muster::cli
