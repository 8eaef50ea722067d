// The verbs around a model: each function adds one to `app`.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

// `arguments` are all words after the verb, for the tasks of a job.
void AddTrain(CLI::App& app, const std::vector<std::string>& arguments);
void AddWorker(CLI::App& app);
// `command`: the words after "--".
void AddTune(CLI::App& app, const std::vector<std::string>& command);
void AddEvaluate(CLI::App& app, const std::vector<std::string>& arguments);
void AddPredict(CLI::App& app, const std::vector<std::string>& arguments);
void AddExport(CLI::App& app);
void AddExplain(CLI::App& app);
void AddInspect(CLI::App& app);
// Adds `compile` to `muster records`.
void AddRecordsCompile(CLI::App& records);

}  // namespace muster::cli
