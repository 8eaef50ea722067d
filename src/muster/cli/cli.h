// The command line: `muster VERB ...`.
// Exit codes: 0 done, 1 failed, 2 wrong use.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

int Main(int argc, char** argv);

// Each of these adds a verb about the program itself to `app`; when the verb runs, it reads all
// verbs of `app`.
void AddHelp(CLI::App& app);
void AddDoctor(CLI::App& app);
void AddVersion(CLI::App& app);
void AddCompletion(CLI::App& app);
void AddMan(CLI::App& app);

// Prints what `muster complete -- WORD...` must print for the shells' completion: `words` are those
// after "complete". This is not a verb, since no word may be read as a flag of its own.
void PrintWordsThatFollow(const CLI::App& app, std::vector<std::string> words);

}  // namespace muster::cli
