#include "muster/cli/common/wrong_use.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/nearest.h"
#include "muster/base/strings.h"
#include "muster/cli/common/help.h"
#include "muster/model/spec/data_check.h"

namespace muster::cli {
namespace {

// What CLI11 says of an option that takes one value and gets another.
constexpr std::string_view kTooMany = ": At Most 1 required";
// What it says of an option that is missing.
constexpr std::string_view kRequired = " is required";

bool IsFlag(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

std::vector<std::string> GetVerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const verb : GetVisibleVerbs(app)) names.push_back(verb->get_name());
  return names;
}

// Returns the verb that was being parsed, with the verbs before it: "muster records from-csv".
struct Reading {
  const CLI::App* verb = nullptr;
  std::string name = {};
  std::string extra = {};  // the first word that none of them takes; a flag if there is one
};

Reading FindReading(const CLI::App& app) {
  Reading reading = {.verb = &app, .name = app.get_name()};
  while (true) {
    for (const std::string& word : reading.verb->remaining()) {
      if (reading.extra.empty() || (IsFlag(word) && !IsFlag(reading.extra))) reading.extra = word;
    }
    const std::vector<CLI::App*> parsed = reading.verb->get_subcommands();
    if (parsed.empty()) return reading;
    reading.verb = parsed.front();
    reading.name += " " + reading.verb->get_name();
  }
}

// The only one of `known` that begins with the letter of a flag such as -o: "" if there are others.
std::string FindLongName(std::string_view flag, const std::vector<std::string>& known) {
  if (flag.size() != 2 || flag[1] == '-') return "";
  std::string found;
  for (const std::string& name : known) {
    if (name[2] != flag[1]) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

std::string DescribeUnknownFlag(const CLI::App& verb, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known = {"--help", "--help-all"};
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  // The list of all flags is left out: --help says more.
  std::string nearest = FindLongName(flag, known);
  if (nearest.empty()) nearest = Nearest(flag, known);
  return StrCat("unknown flag '", flag, "'",
                nearest.empty() ? "" : StrCat(" (did you mean '", nearest, "'?)"));
}

// CLI11 says "Could not convert: --epochs = 1.5". Options of fractions have their type's name.
std::string DescribeNoNumber(const CLI::App& verb, const std::string& what) {
  constexpr std::string_view kCannot = "Could not convert: ";
  const size_t equals = what.find(" = ");
  if (!what.starts_with(kCannot) || equals == std::string::npos) return what;
  const std::string flag = what.substr(kCannot.size(), equals - kCannot.size());
  const std::string value = what.substr(equals + 3);
  const CLI::Option* const option = verb.get_option_no_throw(flag);
  const bool is_fraction = option != nullptr && option->get_type_name() == "FLOAT";
  const bool is_int =
      !value.empty() && value.find_first_not_of("0123456789", value[0] == '-') == std::string::npos;
  if (is_int) return StrCat(flag, ": ", value, value[0] == '-' ? " is negative" : " is too large");
  return StrCat(flag, ": '", value, "' is not a ", is_fraction ? "" : "whole ", "number");
}

// An argument may be one of the two values: where there is a flag for data, it was meant for that.
std::string DescribeTwice(const CLI::App& verb, const std::string& flag) {
  const CLI::Option* const option = verb.get_option_no_throw(flag);
  const bool is_argument = option != nullptr && option->get_positional();
  std::string what = StrCat(flag, " is given twice");
  if (!is_argument || option->results().size() < 2) return what;
  what = StrCat(what, ": '", absl::StrJoin(option->results(), "' and '"), "'");
  for (const char* const data : {"--train", "--data"}) {
    if (verb.get_option_no_throw(data) != nullptr) return StrCat(what, "; data stand after ", data);
  }
  return what;
}

// NAME=VALUE may have been meant for a flag that has taken another one: "" unless there is one.
std::string DescribeSetting(const CLI::App& verb, const std::string& word) {
  if (word.find('=') == std::string::npos) return "";
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    if (option->get_positional() || option->empty()) continue;
    if (option->results().back().find('=') == std::string::npos) continue;
    const std::string flag = option->get_name();
    return StrCat(": each setting needs its own ", flag, ": ", flag, " ", word);
  }
  return "";
}

// A flag of several values may have taken the argument that is missing: "" unless it has.
std::string DescribeTaken(const CLI::App& verb, const std::string& argument) {
  const CLI::Option* const missing = verb.get_option_no_throw(argument);
  if (missing == nullptr || !missing->get_positional()) return "";
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    if (option->get_positional() || option->results().size() < 2) continue;
    const std::string& last = option->results().back();
    if (option->get_items_expected_max() < 2 || model::IsNamedAsData(last)) continue;
    const std::string flag = option->get_name();
    return StrCat(argument, " is required, and '", last, "' is taken as a value of ", flag,
                  ", which takes all words up to the next flag: write it before ", flag);
  }
  return "";
}

}  // namespace

std::string FindUnknownVerb(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* verb = &app;
  std::string name = app.get_name();
  for (int i = 1; i < argc && !IsFlag(argv[i]); ++i) {
    const std::string word = argv[i];
    if (GetVerbNames(*verb).empty()) return "";
    const auto found =
        verb->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (found.empty()) {
      return StrCat(name, ": unknown verb '", word, "'", DidYouMean(word, GetVerbNames(*verb)),
                    "\n", name, " --help shows the verbs");
    }
    verb = found.front();
    name += " " + word;
  }
  return "";
}

std::string DescribeWrongUse(const CLI::App& app, const CLI::ParseError& error) {
  const Reading reading = FindReading(app);
  // What is missing may be what the unknown flag was meant to give. Its value is then taken for an
  // argument, such as the model folder, which may thereby be given twice.
  const bool is_twice = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  const bool may_be_misspelt = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                               dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                               dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                               is_twice;
  std::string what = DescribeNoNumber(*reading.verb, error.what());
  if (const size_t most = what.find(kTooMany); is_twice && most != std::string::npos) {
    what = DescribeTwice(*reading.verb, what.substr(0, most));
  }
  if (may_be_misspelt && IsFlag(reading.extra)) {
    what = DescribeUnknownFlag(*reading.verb, reading.extra);
  } else if (!reading.extra.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what = StrCat("there is no use for '", reading.extra, "'",
                  DescribeSetting(*reading.verb, reading.extra));
  } else if (!reading.extra.empty() && what.starts_with("--") && what.ends_with(kRequired)) {
    // An argument too many stands where a flag's value was meant.
    const std::string flag = what.substr(0, what.size() - kRequired.size());
    what = StrCat(what, ", and there is no use for '", reading.extra, "': did you mean ", flag, " ",
                  reading.extra, "?");
  } else if (const std::string taken =
                 what.ends_with(kRequired)
                     ? DescribeTaken(*reading.verb, what.substr(0, what.size() - kRequired.size()))
                     : "";
             !taken.empty()) {
    what = taken;
  } else if (!GetVisibleVerbs(*reading.verb).empty()) {
    what = "a verb is missing";
  }
  return StrCat(reading.name, ": ", what, "\n", reading.name, " --help shows its flags");
}

}  // namespace muster::cli
