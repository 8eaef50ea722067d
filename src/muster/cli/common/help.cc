#include "muster/cli/common/help.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/base/terminal.h"

namespace muster::cli {
namespace {

using Options = std::vector<const CLI::Option*>;

constexpr size_t kWidth = 80;
constexpr size_t kNameColumns = 26;
constexpr char kUngrouped[] = "Options";  // CLI11's name for a flag in no group
constexpr std::string_view kFrequent[] = {kUngrouped,  kTasks,     kData,    kTraining,
                                          kEvaluation, kProcesses, kCluster, kResults};
constexpr std::string_view kRare[] = {kMoreData,      kMoreTraining, kMoreModel, kMoreEvaluation,
                                      kMoreProcesses, kCheckpoints,  kEvents,    kPlace,
                                      kFailures,      kNetwork};
// CLI11 knows these bounds by the words.
constexpr std::string_view kPositive = "POSITIVE";
constexpr std::string_view kNonNegative = "NONNEGATIVE";

bool IsArgument(const CLI::Option& option) { return option.get_positional(); }

bool TakesMany(const CLI::Option& option) {
  return option.get_type_size() != 0 &&
         option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

bool IsFrequent(const std::string& group) {
  return std::ranges::find(kRare, group) == std::end(kRare);
}

// The known groups in their order, then those that are not known here.
std::vector<std::string> OrderGroups(const Options& options) {
  std::vector<std::string> groups(std::begin(kFrequent), std::end(kFrequent));
  for (const CLI::Option* const option : options) {
    const std::string& group = option->get_group();
    if (IsFrequent(group) && std::ranges::find(groups, group) == groups.end()) {
      groups.push_back(group);
    }
  }
  groups.insert(groups.end(), std::begin(kRare), std::end(kRare));
  return groups;
}

Options SelectGroup(const Options& options, const std::string& group) {
  Options selected;
  for (const CLI::Option* const option : options) {
    if (!IsArgument(*option) && option->get_group() == group) selected.push_back(option);
  }
  return selected;
}

std::string GetFlagNames(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return absl::StrJoin(names, ", ");
}

std::string GetArgumentLabel(const CLI::Option& option) {
  std::string label = GetTypeLabel(option);
  if (label.empty() || label == "TEXT") {
    label = absl::AsciiStrToUpper(option.get_name(/*positional=*/true, /*all_options=*/false));
  }
  return label;
}

std::string Describe(const CLI::Option& option, bool with_rules) {
  std::string text = option.get_description();
  const std::string& value = option.get_default_str();
  if (!value.empty() && text.find("default") == std::string::npos) {
    text += StrCat(" (default: ", value, ")");
  }
  if (IsArgument(option) && !option.get_lnames().empty()) {
    text += StrCat("; also ", GetFlagNames(option));
  }
  if (!with_rules) return text;
  const auto say = [&](const char* rule, const std::set<CLI::Option*>& others) {
    std::vector<std::string> names;
    for (const CLI::Option* const other : others) {
      if (!other->get_group().empty()) names.push_back(other->get_name());
    }
    if (!names.empty()) text += StrCat(" [", rule, " ", absl::StrJoin(names, ", "), "]");
  };
  say("with", option.get_needs());
  say("not with", option.get_excludes());
  return text;
}

std::string MakeRow(const std::string& name, const std::string& text) {
  const std::vector<std::string> lines = WrapText(text, kWidth - kNameColumns);
  std::string row = "  " + name;
  const bool is_long = row.size() + 2 > kNameColumns;
  if (is_long) row += "\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 || is_long) {
      row += std::string(kNameColumns, ' ');
    } else {
      row.resize(kNameColumns, ' ');
    }
    row += lines[i] + "\n";
  }
  return lines.empty() && !is_long ? row + "\n" : row;
}

std::string MakeFlagRow(const CLI::Option& option, bool with_rules) {
  std::string name = GetFlagNames(option);
  if (const std::string label = GetTypeLabel(option); !label.empty()) name += " " + label;
  if (TakesMany(option) && !name.ends_with("...")) name += "...";
  return MakeRow(name, Describe(option, with_rules));
}

std::string MakeUsage(const CLI::App& app, const std::string& name) {
  std::string usage = StrCat("Usage: ", name);
  std::vector<std::string> words;
  const Options options = GetVisibleOptions(app);
  for (const CLI::Option* const option : options) {
    if (!IsArgument(*option)) continue;
    const std::string label = StrCat(GetArgumentLabel(*option), TakesMany(*option) ? "..." : "");
    words.push_back(option->get_required() ? label : StrCat("[", label, "]"));
  }
  for (const CLI::Option* const option : options) {
    if (IsArgument(*option) || !option->get_required()) continue;
    words.push_back(StrCat(GetFlagNames(*option), " ", GetTypeLabel(*option)));
  }
  if (std::ranges::any_of(options, [](const auto* each) { return !IsArgument(*each); })) {
    words.emplace_back("[FLAGS]");
  }
  if (!GetVisibleVerbs(app).empty()) words.emplace_back("VERB ...");
  const std::string indent(4, ' ');
  size_t column = usage.size();
  for (const std::string& word : words) {
    const bool fits = column + 1 + word.size() <= kWidth;
    usage += fits ? " " + word : "\n" + indent + word;
    column = fits ? column + 1 + word.size() : indent.size() + word.size();
  }
  return usage + "\n";
}

std::string MakeVerbs(const CLI::App& app) {
  const std::vector<const CLI::App*> verbs = GetVisibleVerbs(app);
  std::vector<std::string> groups;
  size_t width = 0;
  for (const CLI::App* const verb : verbs) {
    if (std::ranges::find(groups, verb->get_group()) == groups.end()) {
      groups.push_back(verb->get_group());
    }
    width = std::max(width, verb->get_name().size());
  }
  std::string text;
  for (const std::string& group : groups) {
    text += StrCat("\n", group == "Subcommands" ? "Verbs" : group, ":\n");
    for (const CLI::App* const verb : verbs) {
      if (verb->get_group() != group) continue;
      std::string name = verb->get_name();
      name.resize(width + 2, ' ');
      text += StrCat("  ", name, verb->get_description(), "\n");
    }
  }
  return text;
}

std::string MakeFlags(const CLI::App& app, const std::string& name, bool all) {
  const Options options = GetVisibleOptions(app);
  std::string text;
  std::string arguments;
  for (const CLI::Option* const option : options) {
    if (IsArgument(*option)) {
      arguments += MakeRow(GetArgumentLabel(*option), Describe(*option, all));
    }
  }
  if (!arguments.empty()) text += StrCat("\nArguments:\n", arguments);
  std::vector<std::string> left_out;
  for (const std::string& group : OrderGroups(options)) {
    const Options members = SelectGroup(options, group);
    if (members.empty()) continue;
    if (!all && !IsFrequent(group)) {
      left_out.push_back(absl::AsciiStrToLower(group));
      continue;
    }
    text += StrCat("\n", group == kUngrouped ? "Flags" : group, ":\n");
    for (const CLI::Option* const option : members) text += MakeFlagRow(*option, all);
  }
  if (left_out.empty()) return text;
  const std::string more =
      StrCat(name, " --help-all shows also: ", absl::StrJoin(left_out, "; "), ".");
  return StrCat(text, "\n", absl::StrJoin(WrapText(more, kWidth), "\n"), "\n");
}

// Prose is wrapped; lines that are indented, which are examples, stay as they are, and so does a
// line that ends with a colon, which is their title.
std::string MakeFooter(const std::string& footer) {
  if (footer.empty()) return "";
  std::string text = "\n", prose;
  const auto finish = [&] {
    for (const std::string& line : WrapText(prose, kWidth)) text += line + "\n";
    prose.clear();
  };
  for (const absl::string_view each : absl::StrSplit(footer, '\n')) {
    const std::string_view line = ToStd(each);
    const bool is_prose = !line.starts_with(' ') && !line.ends_with(':');
    if (!is_prose) finish();
    if (is_prose) {
      prose += StrCat(prose.empty() ? "" : " ", line);
    } else {
      text += StrCat(line, "\n");
    }
  }
  finish();
  return text;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = StrCat(absl::StrJoin(WrapText(app->get_description(), kWidth), "\n"), "\n\n",
                              MakeUsage(*app, name), MakeVerbs(*app));
    if (app->get_parent() != nullptr) {
      text += MakeFlags(*app, name, mode == CLI::AppFormatMode::All);
    }
    return text + MakeFooter(app->get_footer());
  }
};

void SayBound(bool positive, CLI::Validator& validator) {
  validator.operation([positive](std::string& text) -> std::string {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) return StrCat("'", text, "' is not a number");
    if (positive ? value > 0 : value >= 0) return "";
    return StrCat(text, " is refused: it must ", positive ? "be above 0" : "not be below 0");
  });
}

void DescribeType(CLI::Option& option) {
  for (int i = 0;; ++i) {
    CLI::Validator* validator = nullptr;
    try {
      validator = option.get_validator(i);
    } catch (const CLI::OptionNotFound&) {
      return;
    }
    const std::string description = validator->get_description();
    if (description == kPositive || description == kNonNegative) {
      SayBound(description == kPositive, *validator);
    }
    validator->description("");
    if (option.get_type_name() != "TEXT") continue;
    if (description.starts_with('{')) {
      const std::string values = description.substr(1, description.size() - 2);
      option.type_name(absl::StrReplaceAll(values, {{",", "|"}}));
    } else if (description == "DIR" || description == "FILE") {
      option.type_name(description);
    }
  }
}

// CLI11 takes any word as the value of an option that needs one.
void RefuseFlags(const CLI::App& verb, CLI::Option& option) {
  if (option.get_positional() || option.get_items_expected_min() == 0) return;
  option.check(CLI::Validator(
      [&verb](const std::string& value) -> std::string {
        if (!value.starts_with("--") || verb.get_option_no_throw(value) == nullptr) return "";
        return StrCat("its value is missing ('", value, "' is a flag)");
      },
      ""));
}

}  // namespace

void Group(CLI::App& verb, const char* group, std::initializer_list<const char*> flags) {
  for (const char* const flag : flags) verb.get_option(flag)->group(group);
}

void SetHelp(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Shows what is used most, with an example");
  app.set_help_all_flag("--help-all", "Shows all flags");
}

void DescribeTypes(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    DescribeType(*option);
    RefuseFlags(app, *option);
  }
  for (CLI::App* const verb : app.get_subcommands([](CLI::App*) { return true; })) {
    DescribeTypes(*verb);
  }
}

std::string GetTypeLabel(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string name = option.get_type_name();
  if (name == "INT" || name == "UINT") return "N";
  return name == "FLOAT" ? "NUMBER" : name;
}

std::vector<const CLI::Option*> GetVisibleOptions(const CLI::App& verb) {
  const Options all = verb.get_options([&](const CLI::Option* option) {
    return !option->get_group().empty() && option != verb.get_help_ptr() &&
           option != verb.get_help_all_ptr();
  });
  Options ordered;
  std::ranges::copy_if(all, std::back_inserter(ordered),
                       [](const auto* o) { return IsArgument(*o); });
  for (const std::string& group : OrderGroups(all)) {
    const Options members = SelectGroup(all, group);
    ordered.insert(ordered.end(), members.begin(), members.end());
  }
  return ordered;
}

std::vector<const CLI::App*> GetVisibleVerbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::vector<std::string> WrapText(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view paragraph : absl::StrSplit(ToAbsl(text), '\n')) {
    std::string line;
    for (const absl::string_view each : absl::StrSplit(paragraph, ' ', absl::SkipEmpty())) {
      const std::string_view word = ToStd(each);
      if (!line.empty() && CountColumns(line) + 1 + CountColumns(word) > width) {
        lines.push_back(std::exchange(line, ""));
      }
      line += StrCat(line.empty() ? "" : " ", word);
    }
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace muster::cli
