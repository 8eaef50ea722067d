// Pieces of a printed YAML document: entries of the map that is open in `out`.
#pragma once

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace muster::formats {

// The shortest text that reads back to the same number.
template <typename Number>
std::string Shortest(Number value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

// A quoted text, as a value or an element.
void EmitText(YAML::Emitter& out, const std::string& text);
// A quoted key, whose value follows.
void EmitKey(YAML::Emitter& out, const std::string& key);
void EmitText(YAML::Emitter& out, const std::string& key, const std::string& text);
void EmitTexts(YAML::Emitter& out, const std::string& key, const std::vector<std::string>& texts);
// "KEY: true", or nothing.
void EmitFlag(YAML::Emitter& out, const std::string& key, bool value);
// "KEY: {": the caller ends the map.
void BeginFlowMap(YAML::Emitter& out, std::string_view key);

template <typename Number>
void EmitNumber(YAML::Emitter& out, const std::string& key, Number value) {
  out << YAML::Key << key << YAML::Value << Shortest(value);
}

// "KEY: [...]", or nothing for an empty list.
template <typename Number>
void EmitNumbers(YAML::Emitter& out, const std::string& key, const std::vector<Number>& numbers) {
  if (numbers.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const Number number : numbers) out << Shortest(number);
  out << YAML::EndSeq;
}

}  // namespace muster::formats
