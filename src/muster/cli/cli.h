// The command line: `muster VERB ...`, one file a verb (verb_<name>.cc).
// Exit codes: 0 done, 1 failed, 2 wrong use.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "CLI/App.hpp"

namespace muster::cli {

int Main(int argc, char** argv);

// Each function adds its subcommand to `app`. The subcommand's callback does the work and throws
// VerbFailed when it fails.
// `arguments`: everything after the verb, for the tasks of a job.
void AddTrain(CLI::App& app, const std::vector<std::string>& arguments);
void AddWorker(CLI::App& app);
void AddEvaluate(CLI::App& app, const std::vector<std::string>& arguments);
void AddPredict(CLI::App& app, const std::vector<std::string>& arguments);
void AddExport(CLI::App& app);
void AddInspect(CLI::App& app);
void AddRecords(CLI::App& app);
void AddSample(CLI::App& app);
// `command`: what stood after "--".
void AddRun(CLI::App& app, const std::vector<std::string>& command);
void AddResume(CLI::App& app);
void AddTensorBoard(CLI::App& app, const std::vector<std::string>& arguments);
void AddJobVerbs(CLI::App& app);
void AddRm(CLI::App& app);
void AddCerts(CLI::App& app);
void AddAgent(CLI::App& app);
void AddReach(CLI::App& app);
void AddCoordinator(CLI::App& app);
void AddSlotCoordinator(CLI::App& app);

struct VerbFailed {
  absl::Status status;
  int exit_code = 1;
};

// Throws VerbFailed unless OK: the end of a verb's callback.
void FailUnlessOk(const absl::Status& status);

}  // namespace muster::cli
