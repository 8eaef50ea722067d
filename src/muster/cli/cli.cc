#include "muster/cli/cli.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/common/wrong_use.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/cli/records/verbs.h"
#include "muster/cli/train/verbs.h"
#include "muster/data/source.h"
#include "muster/math/kernels.h"
#include "muster/process/file_limit.h"
#include "muster/process/heartbeat.h"

namespace muster::cli {

namespace {

// Cuts off the arguments after the first "--" of these verbs, which are another program's command.
std::vector<std::string> ConsumeCommand(int* argc, char** argv) {
  const std::string_view verb = *argc < 2 ? "" : argv[1];
  if (verb != "run" && verb != "tensorboard" && verb != "tune") return {};
  for (int i = 2; i < *argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    std::vector<std::string> command(argv + i + 1, argv + *argc);
    *argc = i;
    return command;
  }
  return {};
}

// What a command without "--" in front of it looks like: flags of muster's own.
void SayWhereACommandStands(const CLI::ParseError& error, int argc, char** argv) {
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (!extra || argc < 2 || std::string_view(argv[1]) != "run") return;
  std::fputs(
      "The program to run stands after --, with its arguments: muster run --workers 2 -- "
      "python train.py\n",
      stderr);
}

// Whether the reader of standard output has left (| head -1), which is no error.
bool ReaderIsGone() {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

// A program that reads results must not take half of them for all. The exit code.
int FlushOutput() {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = flushed ? 0 : errno;
  if ((flushed && std::ferror(stdout) == 0) || error == EPIPE || ReaderIsGone()) return 0;
  std::fprintf(stderr, "muster: writing to standard output: %s: the output is incomplete\n",
               error != 0 ? std::strerror(error) : "an earlier error");
  return 1;
}

// The flags by which the verb that ran continues without records that cannot be read or do not fit.
// On the error's own line: a job names the last line of a failed task as its cause.
std::string DescribeLeavingOut(const CLI::App& app, const absl::Status& failure) {
  if (!data::MayBeLeftOut(failure)) return "";
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  if (verb->get_option_no_throw("--max-bad-records") == nullptr) return "";
  const bool keeps = verb->get_option_no_throw("--rejects") != nullptr;
  return StrCat("; to leave out up to N such records and continue, give --max-bad-records N",
                keeps ? ", and --rejects FILE to keep them" : "");
}

struct VerbGroup {
  const char* title;
  std::vector<const char*> verbs;
};

// What `muster help` shows, in its order. Verbs that only programs start are in no group.
std::vector<VerbGroup> GetVerbGroups() {
  return {{"Data", {"init", "sample", "records", "fs"}},
          {"Models",
           {"train", "tune", "evaluate", "predict", "explain", "export", "inspect", "tensorboard"}},
          {"Jobs of several processes",
           {"run", "submit", "status", "list", "logs", "stop", "suspend", "resume", "rm", "spec",
            "launch", "cluster", "worker", "certs", "operator"}},
          {"This program", {"help", "doctor", "version", "completion"}}};
}

// Adds the one verb of a process that runs for long or of which a job has many, and false for any
// other: the flags of all verbs together hold half a megabyte.
bool AddLastingVerb(CLI::App& app, std::string_view verb) {
  const std::map<std::string_view, void (*)(CLI::App&)> lasting = {
      {"agent", AddAgent},
      {"coordinator", AddCoordinator},
      {"file-service", AddFileService},
      {"operator", AddOperator},
      {"slot-coordinator", AddSlotCoordinator},
      {"supervise", AddCoordinator},
      {"worker", AddWorker}};
  const auto found = lasting.find(verb);
  if (found == lasting.end()) return false;
  found->second(app);
  DescribeTypes(app);
  return true;
}

void AddVerbs(CLI::App& app, const std::vector<std::string>& arguments,
              const std::vector<std::string>& command) {
  AddInit(app);
  AddSample(app);
  AddRecords(app);
  AddRecordsCompile(*app.get_subcommand("records"));
  AddFs(app);
  AddTrain(app, arguments);
  AddTune(app, command);
  AddEvaluate(app, arguments);
  AddPredict(app, arguments);
  AddExport(app);
  AddExplain(app);
  AddInspect(app);
  AddTensorBoard(app, command);
  AddRun(app, command);
  AddSubmit(app);
  AddLaunch(app);
  AddCluster(app);
  AddJobVerbs(app);
  AddResume(app);
  AddRm(app);
  AddWorker(app);
  AddCerts(app);
  AddOperator(app);
  AddHelp(app);
  AddDoctor(app);
  AddVersion(app);
  AddCompletion(app);
  AddMan(app);
  AddAgent(app);
  AddReach(app);
  AddCoordinator(app);
  AddSlotCoordinator(app);
  AddFileService(app);
  for (const VerbGroup& group : GetVerbGroups()) {
    for (const char* const verb : group.verbs) app.get_subcommand(verb)->group(group.title);
  }
  DescribeTypes(app);
}

// What a shell says of a process that SIGTERM ended (128 + 15): launchers start such a task again.
constexpr int kTerminated = 143;

// A verb that was told to end and has put away what it had begun has not done what was asked for.
int GetExitCode(const VerbFailed& failure) {
  return InterruptScope::terminated() && failure.exit_code != kWrongUse ? kTerminated
                                                                        : failure.exit_code;
}

// Parses and runs the verb. The exit code.
int Run(CLI::App& app, int argc, char** argv, bool has_command) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help or the version
    app.exit(asked);
    return FlushOutput();
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s\n", DescribeWrongUse(app, error).c_str());
    if (!has_command) SayWhereACommandStands(error, argc, argv);
    return kWrongUse;
  } catch (const VerbFailed& failure) {
    std::fprintf(stderr, "muster: %s%s\n", std::string(failure.status.message()).c_str(),
                 DescribeLeavingOut(app, failure.status).c_str());
    return GetExitCode(failure);
  }
  return FlushOutput();
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app(
      "Muster trains models of a model file and exported Keras models, on one machine or on "
      "several "
      "that ssh reaches, and continues exactly where a killed process stopped.",
      "muster");
  SetHelp(app);
  app.set_version_flag("--version", StrCat("muster ", Version()));
  app.footer(
      "A verb's flags and an example: muster help VERB, or muster VERB --help\n"
      "First steps:\n"
      "  muster sample clicks --rows 200000 --out clicks.csv\n"
      "  muster records from-csv clicks.csv --out data \\\n"
      "      --spec examples/clicks/clicks.yaml\n"
      "  muster train examples/clicks/clicks.yaml model --train 'data/part-*'");
  app.require_subcommand(1);
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  const std::vector<std::string> command = ConsumeCommand(&argc, argv);
  if (argc < 2 || !AddLastingVerb(app, argv[1])) AddVerbs(app, arguments, command);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stdout);
    return FlushOutput();
  }
  if (std::string_view(argv[1]) == "complete") {
    PrintWordsThatFollow(app, arguments);
    return FlushOutput();
  }
  if (const std::string unknown = FindUnknownVerb(app, argc, argv); !unknown.empty()) {
    std::fprintf(stderr, "%s\n", unknown.c_str());
    return kWrongUse;
  }
  if (const char* const unknown = math::UnknownInstructions(); unknown != nullptr) {
    std::fprintf(stderr,
                 "muster: MUSTER_INSTRUCTIONS=%s names no instruction set (known: baseline, avx2, "
                 "avx512, amx)\n",
                 unknown);
    return kWrongUse;
  }
  // Where the size of files is limited (ulimit -f), a write fails, and does not end the program.
  std::signal(SIGXFSZ, SIG_IGN);
  process::RaiseFileLimit();
  const auto heartbeat = process::Heartbeat::StartIfAsked();
  return Run(app, argc, argv, !command.empty());
}

}  // namespace muster::cli
