// What is said of a command line that is not as its verb wants it. Its exit code is 2.
#pragma once

#include <string>

#include "CLI/App.hpp"

namespace muster::cli {

// "" or why the words after the program's name do not begin with a verb: "unknown verb 'trian' (did
// you mean 'train'?)". Flags in the place of a verb are left to the parser.
std::string FindUnknownVerb(const CLI::App& app, int argc, const char* const* argv);

// What is wrong, with the verb in front and where to read on: "muster train: unknown flag '--epoch'
// (did you mean '--epochs'?)". `app` has thrown `error` while it parsed.
std::string DescribeWrongUse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace muster::cli
