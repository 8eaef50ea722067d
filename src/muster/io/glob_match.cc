#include "muster/io/glob_match.h"

#include <cstddef>

namespace muster::io {
namespace {

// Whether the pattern's element at `at` (not a star) accepts `c`; *next becomes the place after the
// element.
bool MatchesOne(std::string_view pattern, size_t at, char c, size_t* next) {
  *next = at + 1;
  if (pattern[at] == '?') return true;
  if (pattern[at] != '[') return pattern[at] == c;
  size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  const size_t close = pattern.find(']', i + 1);  // a ']' that comes first is in the set
  if (close == std::string_view::npos) return c == '[';
  *next = close + 1;
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(pattern[k]); };
  const auto wanted = static_cast<unsigned char>(c);
  bool found = false;
  while (i < close) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      found |= byte(i) <= wanted && wanted <= byte(i + 2);
      i += 3;
    } else {
      found |= byte(i) == wanted;
      ++i;
    }
  }
  return found != negated;
}

}  // namespace

bool HasWildcard(std::string_view pattern) {
  return pattern.find_first_of("*?[") != std::string_view::npos;
}

bool MatchesWildcards(std::string_view pattern, std::string_view name) {
  if (!name.empty() && (name.front() == '.' || name.front() == '_') &&
      (pattern.empty() || pattern.front() != name.front())) {
    return false;
  }
  size_t p = 0, n = 0;
  size_t star = std::string_view::npos;  // after the last star
  size_t star_end = 0;                   // where that star's run ends for now
  while (n < name.size()) {
    size_t next;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_end = n;
    } else if (p < pattern.size() && MatchesOne(pattern, p, name[n], &next)) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace muster::io
