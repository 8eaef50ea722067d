// Prints pieces of a model file that is written for people to read and change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

// Prints a scalar: plain if YAML reads it as this text, else in double quotes. `text` is UTF-8.
std::string YamlText(std::string_view text);

// Prints "[a, b, ...]", broken into lines of at most about 100 characters. The first line begins at
// column `column`, the others are indented by `indent`.
std::string YamlList(const std::vector<std::string>& texts, size_t column, size_t indent);

// Prints a number with as few digits as give six places.
std::string YamlNumber(double value);

// Prints a value for a comment: on one line, cut to 30 characters.
std::string CommentText(std::string_view text);

}  // namespace muster::model
