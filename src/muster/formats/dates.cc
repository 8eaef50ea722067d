#include "muster/formats/dates.h"

#include <chrono>
#include <string>

namespace muster::formats {
namespace {

// Reads a text from its beginning; every function returns whether it found what it looks for.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return text_.empty(); }
  bool Consume(char wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Reads a number of exactly `digits` digits.
  bool ConsumeNumber(size_t digits, int* number) {
    if (text_.size() < digits) return false;
    *number = 0;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return false;
      *number = *number * 10 + (c - '0');
    }
    text_.remove_prefix(digits);
    return true;
  }
  void SkipDigits() {
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') text_.remove_prefix(1);
  }
  bool ColonAfterOneDigit() const { return text_.size() > 1 && text_[1] == ':'; }
  bool DotAfterTwoDigits() const { return text_.size() > 2 && text_[2] == '.'; }

 private:
  std::string_view text_;
};

bool ReadDay(DateReader& reader, std::chrono::sys_days* day) {
  int y = 0, m = 0, d = 0;
  if (reader.DotAfterTwoDigits()) {
    if (!reader.ConsumeNumber(2, &d) || !reader.Consume('.') || !reader.ConsumeNumber(2, &m) ||
        !reader.Consume('.') || !reader.ConsumeNumber(4, &y)) {
      return false;
    }
  } else {
    if (!reader.ConsumeNumber(4, &y)) return false;
    const char separator = reader.Consume('-') ? '-' : '/';
    if (separator == '/' && !reader.Consume('/')) return false;
    if (!reader.ConsumeNumber(2, &m) || !reader.Consume(separator) ||
        !reader.ConsumeNumber(2, &d)) {
      return false;
    }
  }
  const std::chrono::year_month_day date{std::chrono::year(y),
                                         std::chrono::month(static_cast<unsigned>(m)),
                                         std::chrono::day(static_cast<unsigned>(d))};
  *day = date;
  return date.ok();
}

constexpr int kMinute = 60, kHour = 3600;

bool ReadClock(DateReader& reader, size_t digits_of_hour, int64_t* seconds) {
  int h = 0, m = 0, s = 0;
  if (!reader.ConsumeNumber(digits_of_hour, &h) || !reader.Consume(':') ||
      !reader.ConsumeNumber(2, &m)) {
    return false;
  }
  if (reader.Consume(':')) {
    if (!reader.ConsumeNumber(2, &s)) return false;
    if (reader.Consume('.')) reader.SkipDigits();
  }
  if (h > 23 || m > 59 || s > 60) return false;  // 60: a leap second
  *seconds = h * kHour + m * kMinute + s;
  return true;
}

bool ReadTime(DateReader& reader, int64_t* seconds) {
  int h = 0, m = 0;
  if (!ReadClock(reader, reader.ColonAfterOneDigit() ? 1 : 2, seconds)) return false;
  if (reader.AtEnd() || reader.Consume('Z')) return true;
  if (reader.Consume(' ') && reader.Consume('U')) {
    return reader.Consume('T') && reader.Consume('C');
  }
  const bool east = reader.Consume('+');
  if (!east && !reader.Consume('-')) return false;
  if (!reader.ConsumeNumber(2, &h)) return false;
  reader.Consume(':');
  if (!reader.ConsumeNumber(2, &m) || h > 23 || m > 59) return false;
  const int offset = h * kHour + m * kMinute;
  *seconds += east ? -offset : offset;
  return true;
}

}  // namespace

std::optional<int64_t> ParseDate(std::string_view text) {
  DateReader reader(text);
  std::chrono::sys_days day;
  int64_t seconds = 0;
  if (!ReadDay(reader, &day)) return ParseTime(text);
  if (!reader.AtEnd()) {
    if (!reader.Consume('T') && !reader.Consume(' ')) return std::nullopt;
    if (!ReadTime(reader, &seconds) || !reader.AtEnd()) return std::nullopt;
  }
  return std::chrono::duration_cast<std::chrono::seconds>(day.time_since_epoch()).count() + seconds;
}

std::optional<int64_t> ParseDateCell(std::string_view text) {
  constexpr size_t kYear = 4, kMonth = 2;
  const bool is_compact = text.size() == 8 && (text.starts_with("19") || text.starts_with("20"));
  if (!is_compact || text.find_first_not_of("0123456789") != text.npos) return ParseDate(text);
  std::string spread(text.substr(0, kYear));
  spread.append("-").append(text.substr(kYear, kMonth)).append("-");
  return ParseDate(spread.append(text.substr(kYear + kMonth)));
}

std::optional<int64_t> ParseTime(std::string_view text) {
  DateReader reader(text);
  int64_t seconds = 0;
  const size_t digits_of_hour = text.find(':') == 1 ? 1 : 2;
  if (!ReadClock(reader, digits_of_hour, &seconds) || !reader.AtEnd()) return std::nullopt;
  return seconds;
}

}  // namespace muster::formats
