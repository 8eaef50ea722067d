// The verbs muster help and muster version.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/nearest.h"
#include "muster/base/strings.h"
#include "muster/cli/cli.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/verb.h"
#include "muster/math/kernels.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct HelpFlags {
  std::vector<std::string> verbs;
  bool all = false;
};

// Returns the verb that `words` name; wrong use if there is none.
const CLI::App& FindVerb(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    const auto found =
        verb->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (found.empty()) {
      std::vector<std::string> names;
      for (const CLI::App* const each : GetVisibleVerbs(*verb)) names.push_back(each->get_name());
      RefuseUnlessOk(
          absl::InvalidArgumentError(StrCat("unknown verb '", word, "'", DidYouMean(word, names))));
    }
    verb = found.front();
  }
  return *verb;
}

void ShowHelp(const CLI::App& app, const HelpFlags& flags) {
  const CLI::App& verb = FindVerb(app, flags.verbs);
  const std::string name = absl::StrJoin(flags.verbs, " ");
  const auto mode = flags.all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal;
  const std::string text = verb.get_formatter()->make_help(
      &verb, StrCat(app.get_name(), name.empty() ? "" : " ", name), mode);
  std::fputs(text.c_str(), stdout);
}

void ShowVersion(bool json) {
  if (!json) {
    std::printf("muster %s\n", Version());
    return;
  }
  const nlohmann::ordered_json object = {{"program", "muster"},
                                         {"version", Version()},
                                         {"compiler", __VERSION__},
                                         {"instructions", math::ActiveKernels().name}};
  std::printf("%s\n", object.dump().c_str());
}

}  // namespace

void AddHelp(CLI::App& app) {
  const auto flags = std::make_shared<HelpFlags>();
  CLI::App* const verb = app.add_subcommand("help", "Show the verbs, or one verb's flags");
  verb->footer("Examples:\n  muster help train\n  muster help records from-csv");
  verb->add_option("verb", flags->verbs, "The verb (default: all verbs, a line each)");
  verb->add_flag("--all", flags->all, "All its flags, as VERB --help-all");
  verb->callback([&app, flags] { ShowHelp(app, *flags); });
}

void AddVersion(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* const verb = app.add_subcommand("version", "Show the version of this program");
  verb->footer("Example:\n  muster version --json");
  verb->add_flag("--json", *json, "One object: version, compiler, instruction set of the kernels");
  verb->callback([json] { ShowVersion(*json); });
}

}  // namespace muster::cli
