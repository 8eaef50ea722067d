// Describes what is wrong with a command line. The exit code is 2.
#pragma once

#include <string>

#include "CLI/App.hpp"

namespace muster::cli {

// Returns why the words after the program's name do not begin with a verb, or "": "unknown verb
// 'trian' (did you mean 'train'?)". Flags in place of a verb are left to the parser.
std::string FindUnknownVerb(const CLI::App& app, int argc, const char* const* argv);

// Returns what is wrong, beginning with the verb and ending with where to read more: "muster train:
// unknown flag '--epoch' (did you mean '--epochs'?)". `app` has thrown `error` while parsing.
std::string DescribeWrongUse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace muster::cli
