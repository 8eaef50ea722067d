// Prints --help: a verb's flags in groups, within 80 columns. --help shows the frequently used
// groups, --help-all shows all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

// Groups of a verb's flags. --help shows the first ones, --help-all shows the others too.
inline constexpr char kTasks[] = "Tasks";
inline constexpr char kData[] = "Data";
inline constexpr char kTraining[] = "Training";
inline constexpr char kEvaluation[] = "Evaluation and export";
inline constexpr char kProcesses[] = "Several processes";
inline constexpr char kCluster[] = "A cluster";
inline constexpr char kResults[] = "Results";
inline constexpr char kMoreData[] = "More about data";
inline constexpr char kMoreTraining[] = "More about training";
inline constexpr char kMoreModel[] = "More about the model";
inline constexpr char kMoreEvaluation[] = "More about evaluation and export";
inline constexpr char kMoreProcesses[] = "More about several processes";
inline constexpr char kCheckpoints[] = "Checkpoints";
inline constexpr char kEvents[] = "Events and logs";
inline constexpr char kPlace[] = "Files, environment and GPUs of the tasks";
inline constexpr char kFailures[] = "Failures and time limits";
inline constexpr char kNetwork[] = "Network";
// The group of a flag or verb that only programs use: it is neither shown nor completed.
inline constexpr char kHidden[] = "";

// Puts flags of `verb` into a group. Flags in no group are shown as the verb's first ones. Throws
// CLI::OptionNotFound for a flag that the verb does not have.
void Group(CLI::App& verb, const char* group, std::initializer_list<const char*> flags);

// Makes `app` and the verbs that are added to it afterwards print their help in this way.
void SetHelp(CLI::App& app);

// Prepares the flags of `app` and its verbs, after all of them were added. Bounds are described in
// words ("must be above 0"), not by the largest double with its 309 digits, and are not shown as
// types; a flag that takes one of a few values has these as its type ("csv|jsonl"). A flag's value
// that is another flag is refused.
void DescribeTypes(CLI::App& app);

// Returns the type of a flag's value, as --help shows it: "FILE", "N", "csv|jsonl"; "" if it takes
// none.
std::string GetTypeLabel(const CLI::Option& option);

// Returns the flags and arguments of a verb that people may use, in the order of --help-all.
std::vector<const CLI::Option*> GetVisibleOptions(const CLI::App& verb);
// Returns the verbs of `app` that people may use.
std::vector<const CLI::App*> GetVisibleVerbs(const CLI::App& app);

// Breaks a text into lines of at most `width` columns, without line ends.
std::vector<std::string> WrapText(std::string_view text, size_t width);

}  // namespace muster::cli
