// Finds what can follow an unfinished command line: verbs, flags and the values of flags, all taken
// from the verbs themselves.
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
  // Whether a file or a folder may follow, too.
  bool files = false, folders = false;
};

// `words` are those after the program's name; the last one is being typed and may be "". `jobs` are
// the names of jobs, for arguments that name a job.
Completions Complete(const CLI::App& app, const std::vector<std::string>& words,
                     const std::vector<std::string>& jobs);

// Prints one line per word, "TEXT<tab>ABOUT", and a last line ":files", ":folders" or ":", as the
// shells' scripts read them.
std::string PrintCompletions(const Completions& completions);

// Returns the script that a shell ("bash", "zsh", "fish") sources; null for another shell. It calls
// `muster complete WORD...` for each completion, so that it never lags behind the program.
const char* GetCompletionScript(std::string_view shell);

}  // namespace muster::cli
