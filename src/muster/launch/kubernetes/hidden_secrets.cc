#include "muster/launch/kubernetes/hidden_secrets.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "muster/base/strings.h"

namespace muster::launch::kubernetes {
namespace {

constexpr std::string_view kStars = "***";
constexpr std::array<std::string_view, 7> kSecretNames = {
    "password", "passwd", "secret", "token", "key", "credential", "credentials"};
constexpr std::array<std::string_view, 8> kTokenPrefixes = {
    "AKIA", "ASIA", "ghp_", "github_pat_", "glpat-", "hf_", "xoxb-", "eyJ"};
constexpr size_t kShortestToken = 16;  // of a known service

bool IsOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

// Where a value after its name and `=`, `:` or a blank begins; npos if the name has none.
size_t FindValue(std::string_view line, size_t name_end) {
  size_t at = name_end;
  if (at < line.size() && (line[at] == '"' || line[at] == '\'')) ++at;  // of a JSON name
  const size_t blank = at;
  while (at < line.size() && line[at] == ' ') ++at;
  const bool has_sign = at < line.size() && (line[at] == '=' || line[at] == ':');
  if (has_sign) ++at;
  while (at < line.size() && line[at] == ' ') ++at;
  if (at < line.size() && (line[at] == '"' || line[at] == '\'')) ++at;
  const bool has_value = at < line.size() && (has_sign || at > blank);
  return has_value ? at : line.npos;
}

// The end of the value that begins at `begin`: of the quoted text, or of the word.
size_t FindEnd(std::string_view line, size_t begin) {
  const char before = begin == 0 ? ' ' : line[begin - 1];
  const bool is_quoted = before == '"' || before == '\'';
  const size_t end = is_quoted ? line.find(before, begin) : line.find_first_of(" ,;&\"')}]", begin);
  return std::min(end, line.size());
}

bool EndsWithAName(std::string_view word) {
  return std::any_of(kSecretNames.begin(), kSecretNames.end(), [word](std::string_view name) {
    return absl::EndsWithIgnoreCase(ToAbsl(word), ToAbsl(name));
  });
}

bool IsToken(std::string_view word) {
  return word.size() >= kShortestToken &&
         std::any_of(kTokenPrefixes.begin(), kTokenPrefixes.end(),
                     [word](std::string_view prefix) { return word.starts_with(prefix); });
}

// The end of what is hidden after a word; `word_end` if nothing is. `begin` gets its begin.
size_t FindHidden(std::string_view line, std::string_view word, size_t word_end, size_t* begin) {
  const bool is_scheme = absl::EqualsIgnoreCase(ToAbsl(word), "bearer") ||
                         absl::EqualsIgnoreCase(ToAbsl(word), "basic");
  const bool is_field = absl::EqualsIgnoreCase(ToAbsl(word), "authorization");
  const bool is_flag = word.starts_with("--");
  const size_t value = FindValue(line, word_end);
  if (value == line.npos) return word_end;
  const bool has_sign = line.substr(word_end, value - word_end).find_first_of("=:") != line.npos;
  const bool is_named = EndsWithAName(word) && (has_sign || is_flag);
  if (!is_named && !is_scheme && !(is_field && has_sign)) return word_end;
  *begin = value;
  return is_field ? line.size() : FindEnd(line, value);
}

// The end of `user:password@` after "://"; npos if there is none.
size_t FindUserEnd(std::string_view line, size_t begin) {
  const size_t end = line.find_first_of("/ \"'@", begin);
  return end != line.npos && line[end] == '@' ? end : line.npos;
}

}  // namespace

std::string HideSecrets(std::string_view line) {
  std::string hidden;
  size_t at = 0;
  while (at < line.size()) {
    if (line.substr(at).starts_with("://")) {
      const size_t user = at + 3, end = FindUserEnd(line, user);
      hidden += end == line.npos ? "://" : StrCat("://", kStars);
      at = end == line.npos ? user : end;
      continue;
    }
    if (!IsOfWord(line[at])) {
      hidden += line[at++];
      continue;
    }
    size_t end = at;
    while (end < line.size() && IsOfWord(line[end])) ++end;
    const std::string_view word = line.substr(at, end - at);
    if (IsToken(word)) {
      hidden += kStars;
      at = std::min(line.find_first_of(" ,;&\"')}]", end), line.size());  // a JWT has dots
      continue;
    }
    size_t value = end;
    at = FindHidden(line, word, end, &value);
    hidden += line.substr(static_cast<size_t>(word.data() - line.data()),
                          value - static_cast<size_t>(word.data() - line.data()));
    if (at > value) hidden += kStars;
    at = std::max(at, value);
  }
  return hidden;
}

}  // namespace muster::launch::kubernetes
