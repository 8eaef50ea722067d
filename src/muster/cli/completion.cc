#include "muster/cli/completion.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/help.h"

namespace muster::cli {
namespace {

constexpr std::array kFiles = {"FILE",   "GLOB",   "SPEC",    "PATH",          "PREFIX",
                               "IMAGES", "LABELS", "PROGRAM", "PATH[:PATTERN]"};
constexpr std::array kFolders = {"DIR", "FOLDER"};

constexpr char kBash[] =
    R"(# bash completion of muster; load it with: source <(muster completion bash)
_muster() {
    local line words=() current=${COMP_WORDS[COMP_CWORD]} i
    for ((i = 1; i <= COMP_CWORD; i++)); do words+=("${COMP_WORDS[i]}"); done
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
            :folders) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
            :) ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}
complete -F _muster muster
)";

constexpr char kZsh[] = R"(#compdef muster
# zsh completion of muster; load it with: source <(muster completion zsh)
_muster() {
    local line tab=$'\t'
    local -a found
    for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) _files ;;
            :folders) _files -/ ;;
            :|'') ;;
            *) found+=("${${line%%$tab*}//:/\\:}:${line#*$tab}") ;;
        esac
    done
    (( $#found )) && _describe 'muster' found
}
if [ "$funcstack[1]" = "_muster" ]; then _muster "$@"; else compdef _muster muster; fi
)";

constexpr char kFish[] =
    R"(# fish completion of muster; load it with: muster completion fish | source
function __muster_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':folders'
                __fish_complete_directories (commandline -ct)
            case ':'
            case '*'
                echo $line
        end
    end
end
complete -c muster -f -a '(__muster_complete)'
)";

bool IsOneOf(const auto& labels, std::string_view label) {
  return std::ranges::find(labels, label) != labels.end();
}

void AddValues(const CLI::Option& option, const std::string& begun,
               const std::vector<std::string>& jobs, Completions* to) {
  const std::string label = GetTypeLabel(option);
  for (const absl::string_view each : absl::StrSplit(label, " or ")) {
    to->files = to->files || IsOneOf(kFiles, ToStd(each));
    to->folders = to->folders || IsOneOf(kFolders, ToStd(each));
  }
  if (label.find('|') != std::string::npos) {
    for (const absl::string_view value : absl::StrSplit(label, '|')) {
      if (ToStd(value).starts_with(begun)) to->words.push_back({std::string(value), ""});
    }
  }
  if (!label.ends_with("JOB")) return;
  for (const std::string& job : jobs) {
    if (job.starts_with(begun)) to->words.push_back({job, "job"});
  }
}

const CLI::Option* FindFlag(const CLI::App& verb, const std::string& word) {
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    if (option->check_name(word)) return option;
  }
  return nullptr;
}

void AddFlags(const CLI::App& verb, const std::string& begun, Completions* to) {
  const auto add = [&](const std::string& name, const std::string& about) {
    if (name.starts_with(begun)) to->words.push_back({name, about});
  };
  for (const CLI::Option* const option : GetVisibleOptions(verb)) {
    for (const std::string& name : option->get_lnames()) {
      add("--" + name, option->get_description());
    }
  }
  add("--help", "Shows what is used most");
}

// Where the words before the last one lead.
struct Place {
  const CLI::App* verb;
  const CLI::Option* flag = nullptr;  // the flag that waits for a value
  bool may_end = false;               // the flag has a value, and may take more
  size_t arguments = 0;               // how many arguments the verb has got
};

Place FindPlace(const CLI::App& app, const std::vector<std::string>& before) {
  Place place = {.verb = &app};
  for (const std::string& word : before) {
    if (word.size() > 1 && word[0] == '-') {
      const CLI::Option* const flag = FindFlag(*place.verb, word);
      const bool takes = flag != nullptr && flag->get_type_size() != 0;
      place.flag = takes ? flag : nullptr;
      place.may_end = false;
      continue;
    }
    if (place.flag != nullptr) {
      const bool takes_more = place.flag->get_expected_max() > 1;
      if (!takes_more) place.flag = nullptr;
      place.may_end = takes_more;
      continue;
    }
    const auto found =
        place.verb->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (found.empty()) {
      ++place.arguments;
    } else {
      place.verb = found.front();
    }
  }
  return place;
}

}  // namespace

Completions Complete(const CLI::App& app, const std::vector<std::string>& words,
                     const std::vector<std::string>& jobs) {
  Completions found;
  const std::string begun = words.empty() ? "" : words.back();
  const std::vector<std::string> before(words.begin(), words.end() - (words.empty() ? 0 : 1));
  if (std::ranges::find(before, "--") != before.end()) {
    found.files = true;  // they belong to another program's command
    return found;
  }
  const Place place = FindPlace(app, before);
  const bool is_flag = begun.starts_with('-');
  if (place.flag != nullptr && !is_flag) {
    AddValues(*place.flag, begun, jobs, &found);
    if (!place.may_end) return found;
  }
  for (const CLI::App* const verb : GetVisibleVerbs(*place.verb)) {
    if (!verb->get_name().starts_with(begun)) continue;
    found.words.push_back({verb->get_name(), verb->get_description()});
  }
  if (place.verb->get_parent() == nullptr) return found;
  size_t number = 0;
  for (const CLI::Option* const option : GetVisibleOptions(*place.verb)) {
    if (!option->get_positional() || is_flag) continue;
    const bool takes_more = option->get_expected_max() > 1;
    if (number++ == place.arguments || (takes_more && number <= place.arguments)) {
      AddValues(*option, begun, jobs, &found);
    }
  }
  if (is_flag || (found.words.empty() && !found.files && !found.folders)) {
    AddFlags(*place.verb, begun, &found);
  }
  return found;
}

std::string PrintCompletions(const Completions& completions) {
  std::string text;
  for (const auto& [word, about] : completions.words) text += StrCat(word, "\t", about, "\n");
  text += completions.files ? ":files\n" : completions.folders ? ":folders\n" : ":\n";
  return text;
}

const char* GetCompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : nullptr;
}

}  // namespace muster::cli
