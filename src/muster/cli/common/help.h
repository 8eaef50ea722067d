// What --help shows: a verb's flags in groups within 80 columns, the frequent groups with --help
// and all of them with --help-all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

// Groups of a verb's flags. --help shows the first ones, --help-all the others too.
inline constexpr char kTasks[] = "Tasks";
inline constexpr char kData[] = "Data";
inline constexpr char kTraining[] = "Training";
inline constexpr char kEvaluation[] = "Evaluation and export";
inline constexpr char kProcesses[] = "Several processes";
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
// A flag or verb that programs use and people need not know: it is neither shown nor completed.
inline constexpr char kHidden[] = "";

// Puts flags of `verb` into a group. Flags in no group are shown as the verb's first ones. Throws
// CLI::OptionNotFound for a flag that the verb does not have.
void Group(CLI::App& verb, const char* group, std::initializer_list<const char*> flags);

// Makes `app` and the verbs that are added to it afterwards show their help in this way.
void SetHelp(CLI::App& app);

// Prepares the flags of `app` and its verbs, after all of them have been added: bounds are said in
// words ("must be above 0") instead of by the largest double, of 309 digits; they are not shown as
// types; the values of a flag that takes one of a few are its type ("csv|jsonl").
void DescribeTypes(CLI::App& app);

// What a flag takes, as --help shows it: "FILE", "N", "csv|jsonl"; "" for one that takes nothing.
std::string GetTypeLabel(const CLI::Option& option);

// The flags and arguments of a verb that people may use, in the order of --help-all.
std::vector<const CLI::Option*> GetVisibleOptions(const CLI::App& verb);
// Its verbs that people may use.
std::vector<const CLI::App*> GetVisibleVerbs(const CLI::App& app);

// Lines of at most `width` columns, without an end of line.
std::vector<std::string> WrapText(std::string_view text, size_t width);

}  // namespace muster::cli
