// Prints pieces of a YAML document: entries of the map that is open in `out`.
#pragma once

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace muster::formats {

// Returns the shortest text that reads back as the same number.
template <typename Number>
std::string Shortest(Number value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

// Prints a quoted text, as a value or an element.
void EmitText(YAML::Emitter& out, const std::string& text);
// Prints a quoted key, whose value must follow.
void EmitKey(YAML::Emitter& out, const std::string& key);
void EmitText(YAML::Emitter& out, const std::string& key, const std::string& text);
void EmitTexts(YAML::Emitter& out, const std::string& key, const std::vector<std::string>& texts);
// Prints "KEY: true", or nothing.
void EmitFlag(YAML::Emitter& out, const std::string& key, bool value);
// Prints "KEY: {"; the caller must end the map.
void BeginFlowMap(YAML::Emitter& out, std::string_view key);

template <typename Number>
void EmitNumber(YAML::Emitter& out, const std::string& key, Number value) {
  out << YAML::Key << key << YAML::Value << Shortest(value);
}

// Prints "KEY: [...]", or nothing for an empty list.
template <typename Number>
void EmitNumbers(YAML::Emitter& out, const std::string& key, const std::vector<Number>& numbers) {
  if (numbers.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const Number number : numbers) out << Shortest(number);
  out << YAML::EndSeq;
}

}  // namespace muster::formats
