#include "muster/model/draft/draft_doubts.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

#include "muster/base/number_text.h"
#include "muster/model/draft/yaml_text.h"

namespace muster::model {
namespace {

using data::ColumnProfile;

// A number that stands for a missing value comes again.
constexpr uint64_t kLeastTimes = 2;
// Smaller negative numbers, such as -1, may be one of the values, and scale as well as these.
constexpr double kLargestSentinel = -9;
// What is made of nines is so many times larger than all other values.
constexpr double kNinesApart = 10;

// 999, -9999: three nines or more.
bool IsNines(double value) {
  const std::string digits = StrCat(static_cast<int64_t>(value < 0 ? -value : value));
  constexpr size_t kLeastNines = 3, kMostNines = 9;
  return digits.size() >= kLeastNines && digits.size() <= kMostNines &&
         digits.find_first_not_of('9') == digits.npos;
}

struct Others {  // the values but one
  double min = 0, max = 0;
};

bool IsSentinel(double value, const Others& others) {
  if (value <= kLargestSentinel && others.min >= 0) return true;
  if (!IsNines(value)) return false;
  const double largest = std::max(others.max, -others.min);
  return (value < others.min || value > others.max) && largest * kNinesApart <= std::abs(value);
}

}  // namespace

std::string DescribeSentinel(const ColumnProfile& column) {
  if (column.kind != ColumnProfile::Kind::kInt && column.kind != ColumnProfile::Kind::kFloat) {
    return "";
  }
  if (column.more_distinct || column.is_list()) return "";
  for (const double value : {column.numbers.min, column.numbers.max}) {
    Others others = {.min = column.numbers.max, .max = column.numbers.min};
    std::string text;
    uint64_t times = 0;
    for (const auto& [word, count] : column.words) {
      double number = 0;
      if (!absl::SimpleAtod(word, &number)) return "";
      if (number == value) {
        text = times == 0 ? word : text;
        times += count;
      } else {
        others.min = std::min(others.min, number);
        others.max = std::max(others.max, number);
      }
    }
    constexpr size_t kTwoOthers = 3;  // with the value itself
    if (column.words.size() < kTwoOthers || times < kLeastTimes) continue;
    if (!IsSentinel(value, others)) continue;
    constexpr int kDigits = 6;
    return StrCat(GroupDigits(times), " values are ", text, ", and the others are ",
                  data::NumberText(column, others.min, kDigits), " to ",
                  data::NumberText(column, others.max, kDigits), ": if ", text,
                  " stands for a missing value, give --missing ", text);
  }
  return "";
}

std::string DescribeSpellings(const ColumnProfile& label) {
  if (label.kind != ColumnProfile::Kind::kText || label.more_distinct) return "";
  std::map<std::string, const ColumnProfile::Counted*> known;
  for (const ColumnProfile::Counted& word : label.words) {
    const std::string plain = absl::AsciiStrToLower(absl::StripAsciiWhitespace(ToAbsl(word.first)));
    const auto [at, is_new] = known.emplace(plain, &word);
    if (is_new) continue;
    const auto& [first, times] = *at->second;
    return StrCat(
        "'", CommentText(first), "' (", GroupDigits(times), ") and '", CommentText(word.first),
        "' (", GroupDigits(word.second),
        ") are classes of their own; if they mean the same, write them alike in the data");
  }
  return "";
}

}  // namespace muster::model
