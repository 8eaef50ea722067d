// Dates and times as text, which an int input with Field::date reads as seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::formats {

// Which number comes first in a date such as 11/24/2026. Other forms are read alike in all orders.
enum class DateOrder : uint8_t { kUnknown, kMonthFirst, kDayFirst };

// Returns "month_first", "day_first" or "".
std::string_view DateOrderName(DateOrder order);
std::optional<DateOrder> FindDateOrder(std::string_view name);  // kUnknown has no name

// Returns the seconds of a date or, if `text` is a time alone, those of ParseTime; nullopt for
// other texts. The seconds of a date are those since 1970-01-01 00:00 UTC, without leap seconds. It
// is one of the proleptic Gregorian calendar in one of these forms:
//   2026-11-24, 2026/11/24, 2026.11.24, 2026-1-9,
//   24.11.2026, 9.1.2026,
//   24 Nov 2026, 24-Nov-2026, 24-Nov-26, Nov 24, 2026, November 24 2026 (English, in any case),
//   with an order also 11/24/2026, 11-24-2026 and 11/24/26, and 9.1.26 with the day first,
// each alone or after a day's name ("Tue, 24 Nov 2026"), and alone or before 'T' or a space and a
// time: a clock of ParseTime with 'Z', +02:00, +0200, these or " UTC" or " GMT" after a space, or
// nothing, which is UTC. A year of two digits is one of 1969 to 2068, as POSIX reads it.
std::optional<int64_t> ParseDate(std::string_view text, DateOrder order = DateOrder::kUnknown);

// As ParseDate, and also reads a date without separators, 20261124, of the years 1900 to 2099: such
// a number is not meant as seconds where dates are expected.
std::optional<int64_t> ParseDateCell(std::string_view text, DateOrder order = DateOrder::kUnknown);

// Returns the seconds since midnight of a time alone, 9:05, 13:05, 13:05:09 or 13:05:09.25 (the
// fraction is cut off), 1:05 PM or 1:05:09pm; or those of a duration with days, as pandas and
// Python print it: "2 days 01:50:31", "-1 days +23:00:00", "1 day, 2:03:04". nullopt for other
// texts.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace muster::formats
