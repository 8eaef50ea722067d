// What can follow a command line that is not finished: verbs, flags and the values that a flag
// takes, all from the verbs themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

struct Completions {
  struct Word {
    std::string text, about;
  };
  std::vector<Word> words;
  // A file or folder may stand there, too.
  bool files = false, folders = false;
};

// `words`: those after the program's name; the last one is being typed and may be "". `jobs`: the
// names of jobs, for arguments that are one.
Completions Complete(const CLI::App& app, const std::vector<std::string>& words,
                     const std::vector<std::string>& jobs);

// A line a word, "TEXT<tab>ABOUT", then ":files", ":folders" or ":" in a line of its own: what the
// shells' scripts read.
std::string PrintCompletions(const Completions& completions);

// The script that a shell sources ("bash", "zsh", "fish"); null for another shell. It calls
// `muster complete WORD...` for each completion, so that it is never older than the program.
const char* GetCompletionScript(std::string_view shell);

}  // namespace muster::cli
