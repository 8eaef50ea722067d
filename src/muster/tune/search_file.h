// SearchFile: what `muster tune` is given: a space, a metric, how points are chosen and trials
// stopped, and the model file with its data. docs/tune.md describes the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/tune/study.h"

namespace muster::tune {

struct SearchFile {
  StudySpec study;
  // "" for the search of a command, which has none of these four.
  std::string model;
  std::vector<std::string> train, eval;
  std::vector<std::string> flags;  // further ones of `muster train`
  std::string flags_place;         // "search.yaml: flags", for messages
};

// `name` is the file's name in messages. INVALID_ARGUMENT with line and key.
absl::StatusOr<SearchFile> ParseSearchFile(std::string_view text, const std::string& name,
                                           bool is_of_command);

// What a study may not change between its runs: everything but the budget. `command` is that of the
// search of a command.
Json SearchJson(const SearchFile& search, const std::vector<std::string>& command);

// "90s", "10m", "1.5h" or a number of seconds. INVALID_ARGUMENT.
absl::StatusOr<double> ParseSeconds(const std::string& text);

}  // namespace muster::tune
