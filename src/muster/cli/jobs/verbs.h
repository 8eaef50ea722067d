// The verbs around a job: each function adds one or more to `app`.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

// `command` has the words after "--".
void AddRun(CLI::App& app, const std::vector<std::string>& command);
void AddSubmit(CLI::App& app);
void AddLaunch(CLI::App& app);
void AddCluster(CLI::App& app);
void AddResume(CLI::App& app);
void AddTensorBoard(CLI::App& app, const std::vector<std::string>& arguments);
void AddJobVerbs(CLI::App& app);
void AddRm(CLI::App& app);
void AddCerts(CLI::App& app);
void AddAgent(CLI::App& app);
void AddReach(CLI::App& app);
void AddCoordinator(CLI::App& app);
void AddSlotCoordinator(CLI::App& app);
void AddOperator(CLI::App& app);
void AddFileService(CLI::App& app);

}  // namespace muster::cli
