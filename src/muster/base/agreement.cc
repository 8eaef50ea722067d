#include "muster/base/agreement.h"

#include <algorithm>

#include "absl/strings/str_replace.h"

#include "muster/base/strings.h"

namespace muster {
namespace {

constexpr std::string_view kBetween = "; ";

const Term* FindTerm(const std::vector<Term>& terms, std::string_view name) {
  const auto found = std::find_if(terms.begin(), terms.end(),
                                  [name](const Term& term) { return term.name == name; });
  return found == terms.end() ? nullptr : &*found;
}

bool AgreeOn(const Term& one, const Term& other) {
  return one.value == other.value || one.value == kUnknownTerm || other.value == kUnknownTerm;
}

std::string DescribeTerm(const Term& term) {
  return term.value.empty() ? term.name : StrCat(term.name, " ", term.value);
}

void Append(const std::string& text, std::string* list) {
  *list += list->empty() ? text : StrCat(", ", text);
}

}  // namespace

std::string PrintAgreement(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& term : terms) {
    if (!text.empty()) text += kBetween;
    text += StrCat(term.name, "=", absl::StrReplaceAll(term.value, {{"; ", ", "}}));
  }
  return text;
}

std::vector<Term> ParseAgreement(std::string_view text) {
  std::vector<Term> terms;
  while (!text.empty()) {
    const size_t end = text.find(kBetween);
    const std::string_view each = text.substr(0, end);
    const size_t equals = each.find('=');
    Term& term = terms.emplace_back();
    term.name = each.substr(0, equals);
    if (equals != std::string_view::npos) term.value = each.substr(equals + 1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kBetween.size());
  }
  return terms;
}

std::string DescribeDifference(const Agreed& one, const Agreed& other) {
  const std::vector<Term> ones = ParseAgreement(one.agreement);
  const std::vector<Term> others = ParseAgreement(other.agreement);
  std::string ones_list, others_list;
  for (const Term& term : ones) {
    if (FindTerm(ones, term.name) != &term) continue;  // said already
    const Term* const found = FindTerm(others, term.name);
    if (found != nullptr && AgreeOn(term, *found)) continue;
    Append(DescribeTerm(term), &ones_list);
    if (found != nullptr) Append(DescribeTerm(*found), &others_list);
  }
  for (const Term& term : others) {
    const bool first = FindTerm(others, term.name) == &term;
    if (first && FindTerm(ones, term.name) == nullptr) Append(DescribeTerm(term), &others_list);
  }
  if (ones_list.empty() && others_list.empty()) return "";
  return StrCat(one.task, " has [", ones_list, "], ", other.task, " has [", others_list, "]");
}

std::string CompleteAgreement(std::string_view known, std::string_view other) {
  std::vector<Term> terms = ParseAgreement(known);
  if (std::none_of(terms.begin(), terms.end(),
                   [](const Term& term) { return term.value == kUnknownTerm; })) {
    return std::string(known);
  }
  const std::vector<Term> others = ParseAgreement(other);
  for (Term& term : terms) {
    const Term* const found = FindTerm(others, term.name);
    if (term.value == kUnknownTerm && found != nullptr) term.value = found->value;
  }
  return PrintAgreement(terms);
}

}  // namespace muster
