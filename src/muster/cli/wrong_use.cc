#include "muster/cli/wrong_use.h"

#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/base/nearest.h"
#include "muster/base/strings.h"
#include "muster/cli/common/help.h"

namespace muster::cli {
namespace {

// What CLI11 says of an option that takes one value and gets another.
constexpr std::string_view kTooMany = ": At Most 1 required";

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

std::string DescribeUnknownFlag(const CLI::App& verb, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known = {"--help", "--help-all"};
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  // The list of all flags is left out: --help says more.
  const std::string nearest = Nearest(flag, known);
  return StrCat("unknown flag '", flag, "'",
                nearest.empty() ? "" : StrCat(" (did you mean '", nearest, "'?)"));
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
  std::string what = error.what();
  if (const size_t most = what.find(kTooMany); is_twice && most != std::string::npos) {
    what = StrCat(what.substr(0, most), " is given twice");
  }
  if (may_be_misspelt && IsFlag(reading.extra)) {
    what = DescribeUnknownFlag(*reading.verb, reading.extra);
  } else if (!reading.extra.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what = StrCat("there is no use for '", reading.extra, "'");
  } else if (!GetVisibleVerbs(*reading.verb).empty()) {
    what = "a verb is missing";
  }
  return StrCat(reading.name, ": ", what, "\n", reading.name, " --help shows its flags");
}

}  // namespace muster::cli
