#include "muster/formats/text_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "muster/base/strings.h"
#include "muster/formats/dates.h"

namespace muster::formats {
namespace {

constexpr std::array<std::string_view, 6> kUnits = {"%", "$", "€", "£", "¥", "₹"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool AreDigits(std::string_view text) { return std::ranges::all_of(text, IsDigit); }

// Whether the text is one that stands for yes or no.
bool IsTruth(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kTruths = {"yes", "no", "true", "false",
                                                              "y",   "n",  "t",    "f"};
  return std::ranges::any_of(kTruths, [text](std::string_view truth) {
    return absl::EqualsIgnoreCase(ToAbsl(text), ToAbsl(truth));
  });
}

// Removes the '+', which std::from_chars does not accept.
std::string_view TrimPlus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// Parses a number that std::from_chars found to be out of range; tiny values become 0, as with
// strtof.
ParsedNumber ParseOutOfRange(std::string_view text, float* value) {
  if (!absl::SimpleAtof(ToAbsl(text), value)) return ParsedNumber::kWrongType;
  return std::isfinite(*value) ? ParsedNumber::kOk : ParsedNumber::kOutOfRange;
}

// Parses a whole number that is not written as plain digits: "3.0", "3.7", "1e3".
ParsedNumber ParseIntFromReal(std::string_view text, bool truncate, int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  const std::string_view rest(stop, end - stop);
  if (error == std::errc() && rest.starts_with('.') && AreDigits(rest.substr(1))) {
    const bool whole = rest.find_first_not_of('0', 1) == std::string_view::npos;
    return whole || truncate ? ParsedNumber::kOk : ParsedNumber::kFraction;
  }
  double real = 0;
  const auto [real_stop, real_error] = std::from_chars(text.data(), end, real);
  if (real_stop != end || text.empty()) return ParsedNumber::kWrongType;
  if (real_error == std::errc() && !std::isfinite(real)) return ParsedNumber::kNotFinite;
  if (real_error != std::errc() || !(std::fabs(real) < 0x1p63)) return ParsedNumber::kOutOfRange;
  *value = static_cast<int64_t>(real);
  return truncate || real == std::trunc(real) ? ParsedNumber::kOk : ParsedNumber::kFraction;
}

std::string_view TrimSign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view TrimSpaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

ParsedNumber ParseFloat(std::string_view text, float* value) {
  text = TrimPlus(text);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop != end) return ParsedNumber::kWrongType;
  if (error == std::errc::result_out_of_range) return ParseOutOfRange(text, value);
  if (error != std::errc()) return ParsedNumber::kWrongType;
  return std::isfinite(*value) ? ParsedNumber::kOk : ParsedNumber::kNotFinite;
}

ParsedNumber ParseInt(std::string_view text, bool truncate, int64_t* value) {
  text = TrimPlus(text);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop == end && error == std::errc()) return ParsedNumber::kOk;
  if (stop == end && error == std::errc::result_out_of_range) return ParsedNumber::kOutOfRange;
  return ParseIntFromReal(text, truncate, value);
}

std::string DescribeNotRead(const Field& field, std::string_view text, ParsedNumber parsed) {
  const std::string type =
      StrCat(field.type == ValueType::kInt ? "an " : "a ", ValueTypeName(field.type));
  switch (parsed) {
    case ParsedNumber::kOutOfRange:
      return StrCat("is out of the range of ", type);
    case ParsedNumber::kNotFinite:
      return "is not a finite number; list it under the input's missing values";
    case ParsedNumber::kFraction:
      return "is not an int (type float keeps it, truncate: true cuts it)";
    case ParsedNumber::kOk:
    case ParsedNumber::kWrongType:
      break;
  }
  const auto is_ordered = [text](DateOrder order) { return ParseDate(text, order).has_value(); };
  const bool needs_order = field.date && field.date_order == DateOrder::kUnknown &&
                           (is_ordered(DateOrder::kMonthFirst) || is_ordered(DateOrder::kDayFirst));
  if (needs_order) return "needs date: month_first or date: day_first of its input to be a date";
  if (field.date) return "is not a date or an int";
  if (IsCommaNumber(text)) {
    return StrCat("is not ", type, " (write it with a point and no comma, as 1234.5)");
  }
  if (IsNumberWithUnit(text))
    return StrCat("is not ", type, " (write the number without its sign)");
  if (IsTruth(text)) {
    return StrCat("is not ", type, " (an input of words is a string; a label lists its two words)");
  }
  if (ParseDate(text)) {
    return StrCat("is not ", type, " (an int input with date: true reads it as seconds)");
  }
  return StrCat("is not ", type);
}

bool IsCommaNumber(std::string_view text) {
  text = TrimSign(text);
  constexpr size_t kThousands = 3;
  size_t commas = 0, digits = 0;
  bool are_thousands = true;  // after each comma
  char before = 0;            // the digits
  for (const char c : text) {
    if (IsDigit(c)) {
      ++digits;
      continue;
    }
    if ((c != ',' && c != '.') || digits == 0) return false;
    are_thousands = are_thousands && (before != ',' || digits == kThousands);
    commas += c == ',' ? 1 : 0;
    before = c;
    digits = 0;
  }
  are_thousands = are_thousands && (before != ',' || digits == kThousands);
  return digits > 0 && (commas == 1 || (commas > 1 && are_thousands));
}

bool IsNumberWithUnit(std::string_view text) {
  text = TrimSign(text);
  for (const std::string_view unit : kUnits) {
    std::string_view number = text;
    if (number.starts_with(unit)) {
      number.remove_prefix(unit.size());
    } else if (number.ends_with(unit)) {
      number.remove_suffix(unit.size());
    } else {
      continue;
    }
    float value = 0;
    number = TrimSpaces(number);
    return ParseFloat(number, &value) == ParsedNumber::kOk || IsCommaNumber(number);
  }
  return false;
}

}  // namespace muster::formats
