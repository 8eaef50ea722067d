// Pieces of a model file that is written for people to read and change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

// A scalar: plain where YAML reads it as this text, else in double quotes. `text` is UTF-8.
std::string YamlText(std::string_view text);

// "[a, b, ...]", broken into lines of at most about 100 characters, of which the first has `column`
// in front of it and the others are indented by `indent`.
std::string YamlList(const std::vector<std::string>& texts, size_t column, size_t indent);

// A number in as few digits as say it to six places.
std::string YamlNumber(double value);

// A value for a comment: on one line, cut to 30 characters.
std::string CommentText(std::string_view text);

}  // namespace muster::model
