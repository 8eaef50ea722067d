#include <algorithm>
#include <cctype>
#include <set>

#include "muster/base/nearest.h"
#include "muster/tune/command_objective.h"

namespace muster::tune {
namespace {

// Calls `text` for text and `name` for each placeholder of the word, in order. A brace that begins
// no placeholder is text, so that JSON can stand in a command.
template <typename Text, typename Name>
void Split(const std::string& word, const Text& text, const Name& name) {
  size_t at = 0;
  while (at < word.size()) {
    if (word.compare(at, 2, "{{") == 0 || word.compare(at, 2, "}}") == 0) {
      text(word.substr(at, 1));
      at += 2;
      continue;
    }
    const size_t end = word[at] == '{' ? word.find_first_of("{}", at + 1) : std::string::npos;
    const std::string found =
        end == std::string::npos || word[end] != '}' ? "" : word.substr(at + 1, end - at - 1);
    const bool is_name = !found.empty() && std::ranges::all_of(found, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    });
    if (is_name) {
      name(found);
      at = end + 1;
    } else {
      text(word.substr(at++, 1));
    }
  }
}

std::vector<std::string> Names(const Space& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return names;
}

}  // namespace

std::string ValueText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : formats::PrintJson(value);
}

absl::Status CheckPlaceholders(const std::vector<std::string>& words, const Space& space) {
  const std::vector<std::string> names = Names(space);
  std::set<std::string> used;
  for (const std::string& word : words) {
    Split(
        word, [](const std::string&) {}, [&](const std::string& name) { used.insert(name); });
  }
  for (const std::string& name : used) {
    if (std::ranges::find(names, name) == names.end()) {
      return absl::InvalidArgumentError(
          StrCat("the command has {", name, "}, which the space does not have",
                 DidYouMean(name, names), "; write {{ for a brace that is meant as one"));
    }
  }
  for (const std::string& name : names) {
    if (used.contains(name)) continue;
    return absl::InvalidArgumentError(StrCat("space.", name, ": the command has no {", name,
                                             "}, so all its values are the same"));
  }
  return absl::OkStatus();
}

std::vector<std::string> FillPlaceholders(const std::vector<std::string>& words, const Space& space,
                                          const Point& point) {
  const Json values = PointJson(space, point);
  std::vector<std::string> filled;
  for (const std::string& word : words) {
    std::string& text = filled.emplace_back();
    Split(
        word, [&](const std::string& part) { text += part; },
        [&](const std::string& name) {
          if (const auto value = values.find(name); value != values.end())
            text += ValueText(*value);
        });
  }
  return filled;
}

}  // namespace muster::tune
