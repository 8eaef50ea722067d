// The command line: `muster VERB ...`.
// Exit codes: 0 done, 1 failed, 2 wrong use.
#pragma once

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace muster::cli {

int Main(int argc, char** argv);

// The verbs about this program: each function adds one to `app`, and reads all of `app`'s verbs
// when it runs.
void AddHelp(CLI::App& app);
void AddDoctor(CLI::App& app);
void AddVersion(CLI::App& app);
void AddCompletion(CLI::App& app);
void AddMan(CLI::App& app);

// What `muster complete -- WORD...` prints, which the shells' completion calls: `words` are those
// after "complete". It is no verb, since no word may be read as a flag of its own.
void PrintWordsThatFollow(const CLI::App& app, std::vector<std::string> words);

}  // namespace muster::cli
