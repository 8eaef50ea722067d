#include "muster/formats/dates.h"

#include <array>
#include <chrono>
#include <string>

namespace muster::formats {
namespace {

constexpr int kMinute = 60, kHour = 3600;
constexpr int64_t kDay = 86400;
constexpr size_t kShortName = 3;  // letters of a month or a day
constexpr std::array<std::string_view, 7> kWeekdays = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "january", "february", "march",     "april",   "may",      "june",
    "july",    "august",   "september", "october", "november", "december"};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Reads a text from its beginning; every function returns whether it found what it looks for.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return text_.empty(); }
  bool AtLetter() const {
    return !text_.empty() && Lower(text_[0]) >= 'a' && Lower(text_[0]) <= 'z';
  }
  bool Consume(char wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool ConsumeText(std::string_view wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  // Returns the character, one of `wanted`; NUL for another one, which stays.
  char ConsumeOneOf(std::string_view wanted) {
    if (text_.empty() || wanted.find(text_[0]) == wanted.npos) return '\0';
    const char found = text_[0];
    text_.remove_prefix(1);
    return found;
  }
  // Reads a number of at most `most` digits, and returns how many it has.
  size_t ConsumeDigits(size_t most, int* number) {
    size_t digits = 0;
    *number = 0;
    for (; digits < most && digits < text_.size(); ++digits) {
      const char c = text_[digits];
      if (c < '0' || c > '9') break;
      *number = *number * 10 + (c - '0');
    }
    text_.remove_prefix(digits);
    return digits;
  }
  bool ConsumeNumber(size_t digits, int* number) { return ConsumeDigits(digits, number) == digits; }
  bool ConsumeOneOrTwo(int* number) { return ConsumeDigits(2, number) > 0; }
  void SkipDigits() {
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') text_.remove_prefix(1);
  }
  std::string ConsumeWord() {
    std::string word;
    while (AtLetter()) {
      word += Lower(text_[0]);
      text_.remove_prefix(1);
    }
    return word;
  }
  // Skips the name of a day of the week or its first three letters, and ", "; nothing if there is
  // none.
  void SkipWeekday() {
    DateReader ahead = *this;
    const std::string word = ahead.ConsumeWord();
    for (const std::string_view day : kWeekdays) {
      const bool is_day = word == day || (word.size() == kShortName && day.starts_with(word));
      if (is_day && ahead.ConsumeText(", ")) *this = ahead;
    }
  }
  // Reads the name of a month or its first three letters ("Sept" is one, too).
  bool ConsumeMonth(int* month) {
    const std::string word = ConsumeWord();
    for (size_t i = 0; i < kMonths.size(); ++i) {
      const bool is_short = word.size() == kShortName && kMonths[i].starts_with(word);
      if (is_short || word == kMonths[i] || (word == "sept" && kMonths[i].starts_with(word))) {
        *month = static_cast<int>(i) + 1;
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view text_;
};

constexpr size_t kYearDigits = 4;

// Reads a year of four digits or, if `may_be_short`, of two.
bool ReadYear(DateReader& reader, bool may_be_short, int* y) {
  const size_t digits = reader.ConsumeDigits(kYearDigits, y);
  if (digits == kYearDigits) return true;
  constexpr int kPivot = 69, kCentury = 100, kOld = 1900;
  if (digits != 2 || !may_be_short) return false;
  *y += *y < kPivot ? kOld + kCentury : kOld;
  return true;
}

// November 24, 2026
bool ReadMonthDayYear(DateReader& reader, int* y, int* m, int* d) {
  if (!reader.ConsumeMonth(m)) return false;
  reader.Consume('.');
  if (!reader.Consume(' ') || !reader.ConsumeOneOrTwo(d)) return false;
  reader.Consume(',');
  return reader.Consume(' ') && reader.ConsumeNumber(kYearDigits, y);
}

// The rest of 24 Nov 2026 or 24-Nov-26 after the first separator.
bool ReadNamedMonthYear(DateReader& reader, char separator, int* y, int* m) {
  if (!reader.ConsumeMonth(m)) return false;
  if (separator == ' ') reader.Consume('.');
  return reader.Consume(separator) && ReadYear(reader, separator == '-', y);
}

bool ReadNumbers(DateReader& reader, DateOrder order, int* y, int* m, int* d) {
  int first = 0;
  const size_t digits = reader.ConsumeDigits(kYearDigits, &first);
  const char separator = reader.ConsumeOneOf("-/. ");
  if (separator == '\0') return false;
  if (digits == kYearDigits) {
    *y = first;
    return separator != ' ' && reader.ConsumeOneOrTwo(m) && reader.Consume(separator) &&
           reader.ConsumeOneOrTwo(d);
  }
  if (digits != 1 && digits != 2) return false;
  *d = first;
  const bool may_be_named = separator == ' ' || separator == '-';
  if (may_be_named && reader.AtLetter()) return ReadNamedMonthYear(reader, separator, y, m);
  const bool has_order = separator == '.' || order != DateOrder::kUnknown;
  if (separator == ' ' || !has_order) return false;
  if (!reader.ConsumeOneOrTwo(m) || !reader.Consume(separator)) return false;
  if (separator != '.' && order == DateOrder::kMonthFirst) std::swap(*m, *d);
  const bool may_be_short = separator != '.' || order == DateOrder::kDayFirst;
  return ReadYear(reader, may_be_short, y);
}

bool ReadDay(DateReader& reader, DateOrder order, std::chrono::sys_days* day) {
  int y = 0, m = 0, d = 0;
  const bool found = reader.AtLetter() ? ReadMonthDayYear(reader, &y, &m, &d)
                                       : ReadNumbers(reader, order, &y, &m, &d);
  if (!found) return false;
  const std::chrono::year_month_day date{std::chrono::year(y),
                                         std::chrono::month(static_cast<unsigned>(m)),
                                         std::chrono::day(static_cast<unsigned>(d))};
  *day = date;
  return date.ok();
}

// Reads what may follow a clock: AM or PM, in any case, after a space or none.
bool ReadHalf(DateReader* reader, int* hour) {
  DateReader ahead = *reader;
  ahead.Consume(' ');
  const char half = Lower(ahead.ConsumeOneOf("AaPp"));
  if (half == '\0' || ahead.ConsumeOneOf("Mm") == '\0') return true;  // there is none
  constexpr int kNoon = 12;
  if (*hour < 1 || *hour > kNoon) return false;
  *hour = *hour % kNoon + (half == 'p' ? kNoon : 0);
  *reader = ahead;
  return true;
}

bool ReadClock(DateReader& reader, int64_t* seconds) {
  int h = 0, m = 0, s = 0;
  if (!reader.ConsumeOneOrTwo(&h) || !reader.Consume(':') || !reader.ConsumeNumber(2, &m)) {
    return false;
  }
  if (reader.Consume(':')) {
    if (!reader.ConsumeNumber(2, &s)) return false;
    if (reader.Consume('.')) reader.SkipDigits();
  }
  if (!ReadHalf(&reader, &h)) return false;
  if (h > 23 || m > 59 || s > 60) return false;  // 60: a leap second
  *seconds = h * kHour + m * kMinute + s;
  return true;
}

bool ReadTime(DateReader& reader, int64_t* seconds) {
  int h = 0, m = 0;
  if (!ReadClock(reader, seconds)) return false;
  if (reader.AtEnd() || reader.Consume('Z')) return true;
  if (reader.ConsumeText(" UTC") || reader.ConsumeText(" GMT")) return true;
  reader.Consume(' ');
  const bool east = reader.Consume('+');
  if (!east && !reader.Consume('-')) return false;
  if (!reader.ConsumeNumber(2, &h)) return false;
  reader.Consume(':');
  if (!reader.ConsumeNumber(2, &m) || h > 23 || m > 59) return false;
  const int offset = h * kHour + m * kMinute;
  *seconds += east ? -offset : offset;
  return true;
}

// "2 days 01:50:31": the days; `reader` is left at the clock.
bool ReadDays(DateReader& reader, int64_t* seconds) {
  constexpr size_t kMostDigits = 9;
  int days = 0;
  const bool is_negative = reader.Consume('-');
  if (reader.ConsumeDigits(kMostDigits, &days) == 0 || !reader.ConsumeText(" day")) return false;
  reader.Consume('s');
  reader.Consume(',');
  if (!reader.Consume(' ')) return false;
  reader.Consume('+');
  *seconds = (is_negative ? -days : days) * kDay;
  return true;
}

}  // namespace

std::string_view DateOrderName(DateOrder order) {
  switch (order) {
    case DateOrder::kMonthFirst:
      return "month_first";
    case DateOrder::kDayFirst:
      return "day_first";
    case DateOrder::kUnknown:
      break;
  }
  return "";
}

std::optional<DateOrder> FindDateOrder(std::string_view name) {
  for (const DateOrder order : {DateOrder::kMonthFirst, DateOrder::kDayFirst}) {
    if (name == DateOrderName(order)) return order;
  }
  return std::nullopt;
}

std::optional<int64_t> ParseDate(std::string_view text, DateOrder order) {
  DateReader reader(text);
  reader.SkipWeekday();
  std::chrono::sys_days day;
  int64_t seconds = 0;
  if (!ReadDay(reader, order, &day)) return ParseTime(text);
  if (!reader.AtEnd()) {
    if (reader.ConsumeOneOf("T ") == '\0') return std::nullopt;
    if (!ReadTime(reader, &seconds) || !reader.AtEnd()) return std::nullopt;
  }
  return std::chrono::duration_cast<std::chrono::seconds>(day.time_since_epoch()).count() + seconds;
}

std::optional<int64_t> ParseDateCell(std::string_view text, DateOrder order) {
  constexpr size_t kYear = 4, kMonth = 2;
  const bool is_compact = text.size() == 8 && (text.starts_with("19") || text.starts_with("20"));
  if (!is_compact || text.find_first_not_of("0123456789") != text.npos) {
    return ParseDate(text, order);
  }
  std::string spread(text.substr(0, kYear));
  spread.append("-").append(text.substr(kYear, kMonth)).append("-");
  return ParseDate(spread.append(text.substr(kYear + kMonth)));
}

std::optional<int64_t> ParseTime(std::string_view text) {
  int64_t days = 0, seconds = 0;
  DateReader reader(text);
  if (!ReadDays(reader, &days)) {
    reader = DateReader(text);
    days = 0;
  }
  if (!ReadClock(reader, &seconds) || !reader.AtEnd()) return std::nullopt;
  return days + seconds;
}

}  // namespace muster::formats
