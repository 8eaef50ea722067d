#include "muster/cli/jobs/job_flags.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/jobs/job_client.h"

namespace muster::cli {
namespace {

// Adds flags for what the tasks find on this machine, and for the coordinator's address.
void AddPlaceFlags(CLI::App& verb, JobFlags* flags) {
  verb.add_option(
          "--env", flags->env,
          "NAME=VALUE: of each task's environment, instead of the template's; {type}, {index} "
          "and {port} stand for the task's own. May be repeated. It is stored in the journal: "
          "do not put a password here")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t equals = text.find('=');
        const bool is_setting = equals != std::string::npos && equals > 0;
        return is_setting ? std::string() : StrCat("'", text, "' is not NAME=VALUE");
      });
  verb.add_option("--volume", flags->volumes,
                  "NAME=PATH: where this machine has a volume of a TFJob's pods; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--path", flags->paths,
                  "/FOLDER=PATH: where this machine has a folder of the image, in commands, "
                  "arguments and environment; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--gpus", flags->gpus,
                  "GPUs of each task, instead of the templates' limits; 0 runs a job made for GPUs "
                  "without: tasks see none (CUDA_VISIBLE_DEVICES is empty, unless --env sets it)")
      ->check(CLI::Range(0, 1024));
  verb.add_flag("--share-gpus", flags->share_gpus,
                "Take GPUs that other jobs of this machine use, too (default: those that no other "
                "has)");
  verb.add_option("--file", flags->files,
                  "PATH or PATH#NAME: a file, of HDFS perhaps, that each task gets in a working "
                  "folder of its own; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--archive", flags->archives,
                  "Like --file, for a .zip or .tar(.gz) that is unpacked into a folder NAME")
      ->allow_extra_args(false);
  AddHostFlags(verb, &flags->hosts, &flags->ssh);
  verb.add_option(
      "--listen", flags->listen,
      "ADDRESS or ADDRESS:PORT of the coordinator (default: 127.0.0.1; with --hosts the "
      "address by which they reach this machine)");
  verb.add_option("--certs", flags->certificates,
                  "A folder of muster certs: the coordinator speaks TLS; required beyond loopback")
      ->check(CLI::ExistingDirectory);
  verb.add_option("--metrics-port", flags->metrics_port,
                  "Serve /metrics (for Prometheus) and /healthz at this port of the --listen "
                  "address, without authentication (default: not served)")
      ->check(CLI::Range(1, 65535));
  verb.add_flag("--isolate", flags->isolate,
                "Run the job in its own network, which has only loopback: no other user of this "
                "machine reaches its ports, and it reaches no other machine")
      ->excludes("--listen")
      ->excludes("--certs")
      ->excludes("--hosts")
      ->excludes("--metrics-port");
  verb.get_option("--certs")->excludes("--hosts");
}

}  // namespace

void AddHostFlags(CLI::App& verb, std::string* hosts, std::string* ssh) {
  auto* const names =
      verb.add_option("--hosts", *hosts,
                      "Machines that run the tasks, in turn, as ssh knows them: a,b,me@c. Each has "
                      "the job's folder "
                      "at the same path, or gets --file and --archive (docs/hosts.md)");
  names->type_name("A,B,...");
  verb.add_option("--ssh", *ssh,
                  "The command that reaches them, such as 'ssh -p 2222 -i key' (default: ssh)")
      ->needs(names)
      ->type_name("COMMAND");
}

void AddJobFlags(CLI::App& verb, JobFlags* flags) {
  verb.add_option("job", flags->file,
                  "A TFJob file (YAML), - for standard input; or a command after --. "
                  "Beside a file the command is the images' entry point")
      ->type_name("FILE");
  verb.add_flag("--chief", flags->chief, "One task is the chief");
  verb.add_option("--workers,--num_worker", flags->workers,
                  "Workers (default: 1, none beside a chief)")
      ->check(CLI::Range(0, 10000));
  verb.add_option("--ps,--num_ps", flags->ps, "Parameter servers")->check(CLI::Range(0, 10000));
  verb.add_flag("--evaluator", flags->evaluator, "One task is the evaluator");
  verb.add_option(
          "--name,--job", flags->name,
          "The job's name: up to 46 of a-z, 0-9, '-' and '_' (default: made from the command)")
      ->check(NewJobNameError);
  verb.add_option(
      "--restart-policy", flags->restart_policy,
      "When a task is restarted: Always, OnFailure, Never, ExitCode (default: OnFailure)");
  verb.add_option("--restarts", flags->restarts, "Restarts of a task within an hour (default: 3)")
      ->check(CLI::Range(0, 1000));
  verb.add_option("--restart-scope", flags->restart_scope,
                  "What is restarted: task or gang (default: gang without ps, task with)")
      ->check(CLI::IsMember({"task", "gang"}));
  verb.add_option("--expect", flags->expect,
                  "Check the cluster for a kind of program: estimator, mwms, psv2 (whose workers "
                  "serve indefinitely: without an evaluator --finish-timeout is 0s then)");
  verb.add_option("--progress-timeout", flags->progress_timeout,
                  "A task without a sign of life (output, a change in --model-dir, another step in "
                  "its MUSTER_STEP_FILE) for this long, such as 10m, counts as failed");
  verb.add_option(
          "--model-dir", flags->model_dir,
          "Where the program keeps its model: for --progress-timeout and muster tensorboard")
      ->type_name("FOLDER");
  verb.add_option(
      "--finish-timeout", flags->finish_timeout,
      "Time for the other tasks to end after success (default: 60s); an evaluator has this "
      "time after it has evaluated the last checkpoint and nothing changes any more");
  verb.add_option("--lease", flags->lease_seconds,
                  "Seconds of silence after which an agent is given up, or ends (default: 10)")
      ->check(CLI::Range(0.5, 3600.0));
  verb.add_option("--grace", flags->grace_seconds, "Seconds from SIGTERM to SIGKILL (default: 10)")
      ->check(CLI::Range(0.0, 3600.0));
  verb.add_option(
          "--rendezvous-timeout", flags->rendezvous_seconds,
          "Seconds to wait until all tasks have reported, 0: unlimited (default: 60); also for "
          "muster worker (default: 300)")
      ->check(CLI::Range(0.0, 1e9));
  verb.add_flag("--evaluator-in-cluster", flags->evaluator_in_cluster,
                "As in TFJob: the TF_CONFIG of every task lists the evaluator");
  verb.add_flag("--master-as-chief", flags->master_as_chief, "TF_CONFIG calls the master chief");
  AddPlaceFlags(verb, flags);
  Group(verb, kTasks, {"--chief", "--workers", "--ps", "--evaluator"});
  Group(verb, kMoreProcesses, {"--expect", "--evaluator-in-cluster", "--master-as-chief"});
  Group(verb, kPlace,
        {"--volume", "--path", "--gpus", "--share-gpus", "--file", "--archive", "--isolate"});
  Group(verb, kNetwork, {"--ssh", "--listen", "--certs", "--metrics-port"});
  Group(verb, kFailures,
        {"--restart-policy", "--restarts", "--restart-scope", "--progress-timeout",
         "--finish-timeout", "--lease", "--grace", "--rendezvous-timeout"});
}

}  // namespace muster::cli
