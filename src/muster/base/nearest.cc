#include "muster/base/nearest.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "muster/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxWord = 64;
constexpr size_t kMaxListed = 20;
constexpr size_t kMinBeginning = 3;  // fewer letters begin too many words

// Computes the Levenshtein distance, one row of the table at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const bool same = absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]);
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kMaxWord) return "";
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxWord) continue;
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance && distance < word.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || word.size() < kMinBeginning) return best;
  // An abbreviation, as "vocab" of "vocabulary", is far by its number of letters.
  for (const std::string& candidate : candidates) {
    if (absl::StartsWithIgnoreCase(candidate, ToAbsl(word))) return candidate;
  }
  return "";
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  if (!nearest.empty()) return StrCat(" (did you mean '", nearest, "'?)");
  if (candidates.empty() || candidates.size() > kMaxListed) return "";
  return StrCat(" (known: ", absl::StrJoin(candidates.begin(), candidates.end(), ", "), ")");
}

}  // namespace muster
