#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/cli/cli.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/completion.h"
#include "muster/control/job_folder.h"

namespace muster::cli {
namespace {

std::vector<std::string> GetJobs() {
  const auto folder = control::JobsFolder();
  return folder.ok() ? control::ListJobs(*folder) : std::vector<std::string>();
}

}  // namespace

void AddCompletion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const verb =
      app.add_subcommand("completion", "Print a script that completes muster's words in a shell");
  verb->footer(
      "Examples:\n"
      "  source <(muster completion bash)              # in ~/.bashrc\n"
      "  source <(muster completion zsh)               # in ~/.zshrc, after compinit\n"
      "  muster completion fish | source               # in ~/.config/fish/config.fish");
  verb->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([shell] { std::fputs(GetCompletionScript(*shell), stdout); });
}

void PrintWordsThatFollow(const CLI::App& app, std::vector<std::string> words) {
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  std::fputs(PrintCompletions(Complete(app, words, GetJobs())).c_str(), stdout);
}

}  // namespace muster::cli
