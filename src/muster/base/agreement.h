// Agreement: the settings in which all tasks of a training must agree, as named terms in a line of
// text that the tasks compare before the first step: "epochs=5; seed=1". A line of another form is
// one term without a value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The value of a term that a task cannot know: it agrees with any other value.
inline constexpr char kUnknownTerm[] = "?";

struct Term {
  std::string name = {};
  std::string value = {};
  friend bool operator==(const Term&, const Term&) = default;
};

// Names must hold neither '=' nor "; "; a value's "; " is printed as ", ".
std::string PrintAgreement(const std::vector<Term>& terms);
std::vector<Term> ParseAgreement(std::string_view text);

// A task's name and its agreement.
struct Agreed {
  std::string task = {};
  std::string agreement = {};
};

// Every term in which two tasks differ, with both values: "worker-0 has [epochs 1], chief-0 has
// [epochs 5]"; "" if they differ in none.
std::string DescribeDifference(const Agreed& one, const Agreed& other);

// `known`, with its unknown terms filled from `other`.
std::string CompleteAgreement(std::string_view known, std::string_view other);

}  // namespace muster
