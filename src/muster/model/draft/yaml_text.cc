#include "muster/model/draft/yaml_text.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

#include "muster/base/strings.h"
#include "muster/base/utf8.h"

namespace muster::model {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kShownCharacters = 30;

// Words that some readers of YAML do not read as text.
constexpr std::array<std::string_view, 9> kReserved = {"true", "false", "yes", "no", "on",
                                                       "off",  "null",  "y",   "n"};

bool IsPlain(std::string_view text) {
  if (text.empty() ||
      !(absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_')) {
    return false;
  }
  const bool all = std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  const std::string lower = absl::AsciiStrToLower(ToAbsl(text));
  return all && std::ranges::find(kReserved, lower) == kReserved.end();
}

}  // namespace

std::string YamlText(std::string_view text) {
  if (IsPlain(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte == 0x7f) {
      quoted += absl::StrFormat("\\x%02x", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string YamlList(const std::vector<std::string>& texts, size_t column, size_t indent) {
  std::string list = "[";
  ++column;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = StrCat(YamlText(texts[i]), i + 1 < texts.size() ? "," : "]");
    if (i > 0 && column + 1 + text.size() > kWidth) {
      list += StrCat("\n", std::string(indent, ' '));
      column = indent;
    } else if (i > 0) {
      list += ' ';
      ++column;
    }
    list += text;
    column += text.size();
  }
  return texts.empty() ? "[]" : list;
}

std::string YamlNumber(double value) { return absl::StrFormat("%.6g", value); }

std::string CommentText(std::string_view text) {
  std::string shown = ReplaceNonUtf8(text);
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  if (shown.size() <= kShownCharacters) return shown;
  shown.resize(kShownCharacters);
  shown.resize(Utf8PrefixSize(shown));
  return StrCat(shown, "...");
}

}  // namespace muster::model
