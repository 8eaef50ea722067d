#include "muster/data/profile/column_profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/formats/dates.h"
#include "muster/formats/text_number.h"

namespace muster::data {
namespace {

using Kind = ColumnProfile::Kind;
using Counted = ColumnProfile::Counted;
using formats::DateOrder;

// Marks that people and programs write in place of a missing value: first those that are marks in
// any text, then those that could be words and count only if all other values are numbers or dates.
constexpr std::array<std::string_view, 13> kTextMarks = {
    "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "\\N", "<NA>", "NaT", "None"};
constexpr std::array<std::string_view, 13> kNumberMarks = {
    "-",       "--",      ".",   "na",   "none", "NONE", "missing",
    "unknown", "Unknown", "inf", "-inf", "n.a.", "nil"};

constexpr size_t kMaxOthers = 32;
// A column of numbers may have this many different texts that are no known marks, in at most this
// share of its rows.
constexpr size_t kMaxUnknownMarks = 2;
constexpr uint64_t kOneMarkOf = 20;
constexpr size_t kCompactDate = 8;  // characters of 20261124
// So many numbers that are all dates of the form 20261124 are no accident.
constexpr uint64_t kLeastCompactDates = 5;
// A text that is a number in more than one value of so many is taken for numbers with odd words.
constexpr uint64_t kNumbersOf = 2;

bool IsOneOf(const auto& table, std::string_view text) {
  return std::ranges::find(table, text) != table.end();
}
bool IsTextMark(std::string_view text) { return IsOneOf(kTextMarks, text); }
bool IsMark(std::string_view text) { return IsTextMark(text) || IsOneOf(kNumberMarks, text); }

struct Number {
  double value = 0;
  bool whole = false;   // a 64-bit int; 3.0 is one, too
  bool padded = false;  // has leading zeros, such as 007
  bool huge = false;    // digits of which a double does not keep all: an ID or a hash
};

constexpr double kExact = 9007199254740992;  // 2^53

// Reads a number as formats/csv.h does.
std::optional<Number> ParseNumber(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  Number number;
  int64_t whole = 0;
  const auto [int_stop, int_error] = std::from_chars(text.data(), end, whole);
  if (text.empty()) return std::nullopt;
  if (int_stop == end && int_error == std::errc()) {
    number = {.value = static_cast<double>(whole), .whole = true};
    number.padded = text.size() > 1 && text[0] == '0';
    number.huge = std::fabs(number.value) >= kExact;
    return number;
  }
  const auto [stop, error] = std::from_chars(text.data(), end, number.value);
  if (stop != end || error != std::errc() || !std::isfinite(static_cast<float>(number.value))) {
    return std::nullopt;
  }
  number.huge = int_stop == end;  // an int of over 64 bits
  number.whole = number.value == std::trunc(number.value) && std::fabs(number.value) < kExact;
  return number;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// 11/24/2026, 24-11-26, 1/2/2026 10:30: dates that formats/dates.h reads in an order only, if at
// all.
bool IsMonthOrDay(std::string_view text) {
  text = text.substr(0, text.find(' '));
  size_t digits = 0;
  std::array<size_t, 3> lengths = {};
  size_t part = 0;
  char separator = 0;
  for (const char c : text) {
    if (IsDigit(c)) {
      ++digits;
      continue;
    }
    const bool separates = c == '/' || c == '-' || c == '.';
    if (!separates || (separator != 0 && c != separator) || part == 2) return false;
    separator = c;
    lengths[part++] = std::exchange(digits, 0);
  }
  lengths[part] = digits;
  const auto is_short = [](size_t length) { return length == 1 || length == 2; };
  return part == 2 && is_short(lengths[0]) && is_short(lengths[1]) &&
         (lengths[2] == 2 || lengths[2] == 4);
}

// Whether the year of a date that IsMonthOrDay has four digits.
bool HasFullYear(std::string_view date) {
  date = date.substr(0, date.find(' '));
  constexpr size_t kYear = 4;
  return date.size() > kYear && IsDigit(date[date.size() - kYear]) &&
         IsDigit(date[date.size() - kYear + 1]);
}

// 13:05 PM, 25:30, 125:30.5: numbers with colons that formats/dates.h does not read.
bool IsUnreadTime(std::string_view text) {
  const size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos || !IsDigit(text[0])) return false;
  const std::string_view after = formats::TrimSpaces(text.substr(end + 1));
  if (!after.empty() && after != "AM" && after != "PM" && after != "am" && after != "pm") {
    return false;
  }
  text = text.substr(0, end + 1);
  size_t colons = 0;
  for (size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1), ++colons) {
    const bool has_two = at + 2 < text.size() && IsDigit(text[at + 1]) && IsDigit(text[at + 2]);
    if (!has_two || !IsDigit(text[at - 1])) return false;
  }
  return (colons == 1 || colons == 2) && text.find_first_not_of("0123456789:.") == text.npos;
}

// 2.030, -17.500: a point that may stand between the thousands. No 0.250.
bool IsGrouped(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  const size_t point = number.find('.');
  return point >= 1 && point <= 3 && number[0] != '0' && number.size() == point + 4 &&
         number.find_first_not_of("0123456789", point + 1) == number.npos;
}

}  // namespace

std::string NumberText(const ColumnProfile& column, double value, int digits) {
  constexpr double kLong = 1e5;
  const bool is_long = std::fabs(value) >= kLong && std::fabs(value) < kExact;
  if (column.kind == Kind::kInt && is_long) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.*g", digits, value);
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kDate:
      return "date";
    case Kind::kTime:
      return "time";
    case Kind::kText:
      return "text";
    case Kind::kNothing:
      break;
  }
  return "nothing";
}

void ColumnProfile::SetWords(std::vector<Counted> counted) {
  words = std::move(counted);
  std::ranges::sort(words, [](const Counted& a, const Counted& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  distinct = words.size();
  never_twice = !words.empty() && words.front().second == 1;
}

ColumnProfiler::ColumnProfiler(std::string name, formats::ValueType stored,
                               formats::DateOrder dates)
    : preferred_order_(dates) {
  profile_.name = std::move(name);
  profile_.stored = stored;
}

void ColumnProfiler::AddNumber(double value) {
  ascending_ = ascending_ && (numbers_.count == 0 || value > numbers_.max);
  numbers_.Add(value);
  negative_ = negative_ || value < 0;
  if (!negative_) logarithms_.Add(std::log1p(value));
}

void ColumnProfiler::AddCompactDate(std::string_view digits) {
  const std::optional<int64_t> seconds = formats::ParseDateCell(digits);
  if (!seconds) return;
  ++compact_dates_;
  compact_seconds_.Add(static_cast<double>(*seconds));
}

void ColumnProfiler::AddOther(std::string_view value) {
  if (const std::optional<int64_t> seconds = formats::ParseDate(value)) {
    ++(formats::ParseTime(value) ? times_ : dates_);
    seconds_.Add(static_cast<double>(*seconds));
    return;
  }
  if (AddOrderedDate(value)) return;
  AddUnread(value);
  const auto found = others_.find(value);
  if (found != others_.end()) {
    ++found->second;
  } else if (others_.size() < kMaxOthers || IsTextMark(value)) {
    others_.emplace(value, 1);
  } else {
    more_others_ = true;
  }
}

bool ColumnProfiler::AddOrderedDate(std::string_view value) {
  // The order of dates with a short year cannot be found: 24/11/26 may begin with the year.
  if (!IsMonthOrDay(value)) return false;
  const bool is_preferred = preferred_order_ != DateOrder::kUnknown;
  if (!is_preferred && !HasFullYear(value)) return false;
  bool is_date = false;
  for (const DateOrder order : {DateOrder::kMonthFirst, DateOrder::kDayFirst}) {
    const auto seconds = formats::ParseDate(value, order);
    if (!seconds || (is_preferred && order != preferred_order_)) continue;
    OrderedDates& dates = order == DateOrder::kMonthFirst ? month_first_ : day_first_;
    ++dates.count;
    dates.seconds.Add(static_cast<double>(*seconds));
    is_date = true;
  }
  if (!is_date) return false;
  if (month_or_days_++ == 0) month_or_day_ = value;
  ++ordered_dates_;
  return true;
}

DateOrder ColumnProfiler::FindOrder() const {
  const bool month_first = month_first_.count == ordered_dates_;
  const bool day_first = day_first_.count == ordered_dates_;
  if (ordered_dates_ == 0 || month_first == day_first) return DateOrder::kUnknown;
  return month_first ? DateOrder::kMonthFirst : DateOrder::kDayFirst;
}

void ColumnProfiler::AddUnread(std::string_view value) {
  if (formats::IsCommaNumber(value)) {
    if (comma_numbers_++ == 0) comma_number_ = value;
  } else if (formats::IsNumberWithUnit(value)) {
    if (with_unit_++ == 0) number_with_unit_ = value;
  } else if (IsUnreadTime(value)) {
    if (unread_times_++ == 0) unread_time_ = value;
  } else if (IsMonthOrDay(value)) {
    if (month_or_days_++ == 0) month_or_day_ = value;
  }
}

void ColumnProfiler::FindUnread(ColumnProfile* profile) const {
  using Unread = ColumnProfile::Unread;
  const uint64_t values = profile->values, numbers = ints_ + floats_;
  const auto are_nearly_all = [values](uint64_t count) {
    return (values - std::min(count, values)) * kOneMarkOf <= values;
  };
  const auto found = [profile](Unread unread, const std::string& example) {
    profile->unread = unread;
    profile->unread_value = example;
  };
  if (comma_numbers_ > 0 && are_nearly_all(comma_numbers_ + numbers)) {
    return found(Unread::kCommaNumbers, comma_number_);
  }
  if (with_unit_ > 0 && are_nearly_all(with_unit_ + comma_numbers_ + numbers)) {
    return found(Unread::kNumbersWithUnit, number_with_unit_);
  }
  if (unread_times_ > 0 && are_nearly_all(unread_times_ + times_)) {
    return found(Unread::kTimes, unread_time_);
  }
  if (month_or_days_ > 0 && are_nearly_all(month_or_days_ + dates_)) {
    const bool is_short = !HasFullYear(month_or_day_);
    return found(is_short ? Unread::kShortDates : Unread::kMonthOrDay, month_or_day_);
  }
  // Codes are no amounts, other than a huge number or two among amounts.
  const bool are_amounts = codes_ == huge_ && codes_ * kOneMarkOf <= numbers;
  if (more_others_ || !are_amounts || numbers * kNumbersOf <= values) return;
  for (const auto& other : others_) {
    if (!IsTextMark(other.first)) profile->odd_words.push_back(other);
  }
  if (huge_ > 0) profile->odd_words.emplace_back(huge_number_, huge_);
  std::ranges::stable_sort(profile->odd_words, std::ranges::greater(), &Counted::second);
  profile->numbers_in_text = numbers - huge_;
  if (!profile->odd_words.empty()) {
    found(Unread::kNumbersAndWords, profile->odd_words.front().first);
  }
}

void ColumnProfiler::Add(std::string_view value) {
  ++values_;
  const auto found = counts_.find(ToAbsl(value));
  if (found != counts_.end()) {
    ++found->second;
  } else if (counts_.size() < kMaxProfiledValues && bytes_ + value.size() <= kMaxProfiledBytes) {
    counts_.emplace(value, 1);
    bytes_ += value.size();
  } else {
    profile_.more_distinct = true;
  }
  const std::string_view text = formats::TrimSpaces(value);
  if (const std::optional<Number> number = ParseNumber(text)) {
    ++(number->whole ? ints_ : floats_);
    codes_ += number->padded || number->huge ? 1 : 0;
    if (number->huge && huge_++ == 0) huge_number_ = text;
    if (text.find('.') != text.npos) {
      ++points_;
      if (IsGrouped(text) && grouped_++ == 0) grouped_number_ = text;
    }
    AddNumber(number->value);
    if (text.size() == kCompactDate) AddCompactDate(text);
  } else {
    AddOther(text);
  }
}

void ColumnProfiler::EndRow(uint64_t values_in_row) {
  profile_.least_in_row =
      profile_.rows == 0 ? values_in_row : std::min(profile_.least_in_row, values_in_row);
  profile_.most_in_row = std::max(profile_.most_in_row, values_in_row);
  profile_.missing += values_in_row == 0 ? 1 : 0;
  ++profile_.rows;
}

bool ColumnProfiler::IsAllBut(uint64_t count, std::vector<Counted>* marks) const {
  if (count == 0 || more_others_) return false;
  size_t unknown = 0;
  for (const auto& other : others_) {
    if (!IsMark(other.first)) ++unknown;
    marks->push_back(other);
  }
  uint64_t marked = 0;
  for (const auto& [text, times] : *marks) marked += IsMark(text) ? 0 : times;
  const uint64_t all = ints_ + floats_ + dates_ + times_ + ordered_dates_;
  return count == all && unknown <= kMaxUnknownMarks && marked * kOneMarkOf <= count;
}

Kind ColumnProfiler::FindKind(std::vector<Counted>* marks) const {
  if (values_ == 0) return Kind::kNothing;
  if (codes_ == 0 && IsAllBut(ints_ + floats_, marks)) {
    if (AreCompactDates()) return Kind::kDate;
    return floats_ == 0 ? Kind::kInt : Kind::kFloat;
  }
  marks->clear();
  const bool has_order = ordered_dates_ == 0 || FindOrder() != DateOrder::kUnknown;
  if (has_order && IsAllBut(dates_ + ordered_dates_, marks)) return Kind::kDate;
  marks->clear();
  if (IsAllBut(times_, marks)) return Kind::kTime;
  marks->clear();
  for (const auto& other : others_) {
    if (IsTextMark(other.first)) marks->push_back(other);
  }
  return Kind::kText;
}

bool ColumnProfiler::AreCompactDates() const {
  return compact_dates_ == ints_ && floats_ == 0 && compact_dates_ >= kLeastCompactDates &&
         profile_.stored == formats::ValueType::kString;
}

ColumnProfile ColumnProfiler::Finish() const {
  ColumnProfile profile = profile_;
  profile.kind = FindKind(&profile.marks);
  profile.values = values_;
  for (const auto& [text, times] : profile.marks) {
    profile.values -= times;
    if (!profile.is_list()) profile.missing += times;
  }
  if (profile.values == 0) profile.kind = Kind::kNothing;
  if (profile.kind == Kind::kText) FindUnread(&profile);
  if (profile.is_number()) profile.numbers = numbers_;
  if (profile.is_number() && grouped_ == points_) profile.grouped_number = grouped_number_;
  if (profile.is_number() && !negative_) profile.logarithms = logarithms_;
  if (profile.is_seconds()) profile.numbers = AreCompactDates() ? compact_seconds_ : seconds_;
  if (profile.kind == Kind::kDate) profile.date_order = FindOrder();
  if (profile.date_order != DateOrder::kUnknown) {
    const bool month_first = profile.date_order == DateOrder::kMonthFirst;
    profile.numbers.Merge((month_first ? month_first_ : day_first_).seconds);
  }
  profile.ascending = profile.is_number() && ascending_;
  std::vector<Counted> words;
  for (const auto& word : counts_) {
    const bool is_mark = std::ranges::any_of(profile.marks, [&word](const Counted& mark) {
      return mark.first == formats::TrimSpaces(word.first);
    });
    if (!is_mark) words.emplace_back(word);
  }
  profile.SetWords(std::move(words));
  return profile;
}

}  // namespace muster::data
