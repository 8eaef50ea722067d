#include "muster/cli/cli.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/number_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/cli/records/verbs.h"
#include "muster/cli/train/verbs.h"
#include "muster/math/kernels.h"
#include "muster/process/file_limit.h"
#include "muster/process/heartbeat.h"

namespace muster::cli {

namespace {

// Cuts what stands behind the first "--" of these verbs off the arguments: another program's.
std::vector<std::string> ConsumeCommand(int* argc, char** argv) {
  const std::string_view verb = *argc < 2 ? "" : argv[1];
  if (verb != "run" && verb != "tensorboard") return {};
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

// Whether whoever was to read standard output has left (| head -1), which is his business.
bool ReaderIsGone() {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

// A program that reads results must not take half of them for all. The exit code.
int FlushOutput() {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = flushed ? 0 : errno;
  if ((flushed && std::ferror(stdout) == 0) || error == EPIPE || ReaderIsGone()) return 0;
  std::fprintf(stderr, "muster: writing to standard output: %s: what it got is not all\n",
               error != 0 ? std::strerror(error) : "an earlier error");
  return 1;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Muster: distributed training where the data lives", "muster");
  app.set_version_flag("--version", StrCat("muster ", Version()));
  app.footer(
      "Each verb shows its flags and an example: muster VERB --help\n"
      "First steps:\n"
      "  muster sample clicks --rows 200000 --out clicks.csv\n"
      "  muster records from-csv clicks.csv --spec examples/clicks/clicks.yaml --out data\n"
      "  muster train examples/clicks/clicks.yaml --train 'data/part-*' --model-dir model");
  app.require_subcommand(1);
  AddInit(app);
  AddSample(app);
  AddRecords(app);
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  AddTrain(app, arguments);
  AddWorker(app);
  AddEvaluate(app, arguments);
  AddPredict(app, arguments);
  AddExport(app);
  AddInspect(app);
  const std::vector<std::string> command = ConsumeCommand(&argc, argv);
  AddRun(app, command);
  AddJobVerbs(app);
  AddRm(app);
  AddResume(app);
  AddTensorBoard(app, command);
  AddCerts(app);
  AddAgent(app);
  AddReach(app);
  AddCoordinator(app);
  AddSlotCoordinator(app);
  SayBounds(app);
  if (const char* const unknown = math::UnknownInstructions(); unknown != nullptr) {
    std::fprintf(stderr,
                 "muster: MUSTER_INSTRUCTIONS=%s names no instruction set (known: baseline, avx2, "
                 "avx512, amx)\n",
                 unknown);
    return 2;
  }
  process::RaiseFileLimit();
  const auto heartbeat = process::Heartbeat::StartIfAsked();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool done = app.exit(error) == 0;
    if (!done && command.empty()) SayWhereACommandStands(error, argc, argv);
    return done ? 0 : 2;
  } catch (const VerbFailed& failure) {
    std::fprintf(stderr, "muster: %s\n", std::string(failure.status.message()).c_str());
    return failure.exit_code;
  }
  return FlushOutput();
}

}  // namespace muster::cli
