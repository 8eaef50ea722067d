#include "muster/cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/math/kernels.h"
#include "muster/process/pulse.h"

namespace muster::cli {

void FailUnlessOk(const absl::Status& status) {
  if (!status.ok()) throw VerbFailed{status};
}

namespace {

// Cuts what stands behind the first "--" of these verbs off the arguments: another program's.
std::vector<std::string> TakeCommand(int* argc, char** argv) {
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

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Muster: distributed training where the data lives", "muster");
  app.set_version_flag("--version", StrCat("muster ", MUSTER_VERSION));
  app.footer(
      "Each verb shows its flags and an example: muster VERB --help\n"
      "First steps:\n"
      "  muster sample clicks --rows 200000 --out clicks.csv\n"
      "  muster records from-csv clicks.csv --spec examples/clicks/clicks.yaml --out data\n"
      "  muster train examples/clicks/clicks.yaml --train 'data/part-*' --model-dir model");
  app.require_subcommand(1);
  AddSample(app);
  AddRecords(app);
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  AddTrain(app, arguments);
  AddWorker(app);
  AddEvaluate(app, arguments);
  AddPredict(app, arguments);
  AddExport(app);
  AddInspect(app);
  const std::vector<std::string> command = TakeCommand(&argc, argv);
  AddRun(app, command);
  AddJobVerbs(app);
  AddResume(app);
  AddTensorBoard(app, command);
  AddCerts(app);
  AddAgent(app);
  AddCoordinator(app);
  if (const char* const unknown = math::UnknownInstructions(); unknown != nullptr) {
    std::fprintf(stderr,
                 "muster: MUSTER_INSTRUCTIONS=%s names no instruction set (known: baseline, avx2, "
                 "avx512, amx)\n",
                 unknown);
    return 2;
  }
  const auto pulse = process::Pulse::StartIfAsked();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const VerbFailed& failure) {
    std::fprintf(stderr, "muster: %s\n", std::string(failure.status.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace muster::cli
