// "Did you mean": the candidate nearest to a misspelt word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster {

// The candidate within a third of the word's length (at least 2) in edit distance, else one that
// begins with the word, if that has 3 letters or more; both compared without case. Empty if there
// is none. Ties go to the first.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

// " (did you mean 'x'?)" or, if no candidate is near and there are at most 20, " (known: a, b, c)";
// else empty. To append to an error message.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace muster
