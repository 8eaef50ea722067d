// CommandObjective: trials as processes. A trial's command prints lines of JSON on its standard
// output; each that has the metric is a report, and the last one is the result:
//
//   {"epoch": 1, "auc": 0.88}
//   {"epoch": 2, "auc": 0.91, "records": 78144}
//
// The resource is "epoch", "step" or "global_step", or else the number of the report. Other lines
// mean nothing. All output is kept in a file for each trial.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/tune/runner.h"

namespace muster::tune {

struct CommandSpec {
  // The words of a trial's command.
  std::function<absl::StatusOr<std::vector<std::string>>(const Trial& trial)> words;
  std::string metric;
  std::string log_folder;  // it exists
  const std::atomic<bool>* stop = nullptr;
};

// The value of a parameter within a command: a text as it is, all else as JSON.
std::string ValueText(const Json& value);
// `words` with {NAME} replaced by the values of the point, that of an absent parameter by nothing;
// {{ and }} become { and }.
std::vector<std::string> FillPlaceholders(const std::vector<std::string>& words, const Space& space,
                                          const Point& point);
// INVALID_ARGUMENT if a parameter of the space is in no word, or a {NAME} in no space.
absl::Status CheckPlaceholders(const std::vector<std::string>& words, const Space& space);

// A trial's log file: FOLDER/0007.log.
std::string TrialLog(const std::string& folder, int64_t trial);

// What a trial's command finds in its environment: its number and, in a population, that of the
// trial from whose end it continues; "" if it begins anew.
std::vector<std::pair<std::string, std::string>> TrialEnvironment(const Trial& trial);

std::unique_ptr<Objective> NewCommandObjective(CommandSpec spec);

}  // namespace muster::tune
