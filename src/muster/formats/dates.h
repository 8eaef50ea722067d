// Dates and times as text, which an int input with Field::date reads as seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::formats {

// Returns the seconds of a date or, if `text` is a time alone, those of ParseTime; nullopt for
// other texts. The seconds of a date are those since 1970-01-01 00:00 UTC, without leap seconds. It
// is one of the proleptic Gregorian calendar in one of these forms:
//   2026-11-24, 2026/11/24, 24.11.2026, each alone or followed by 'T' or a space and a time:
//   13:05, 9:05, 13:05:09, 13:05:09.25 (the fraction is cut off), followed by 'Z', +02:00, +0200,
//   " UTC", " +02:00", " +0200" or nothing. A time without a zone is UTC.
// Dates such as 11/24/2026, whose order of day and month is ambiguous, are not accepted.
std::optional<int64_t> ParseDate(std::string_view text);

// As ParseDate, and also reads a date without separators, 20261124, of the years 1900 to 2099: such
// a number is not meant as seconds where dates are expected.
std::optional<int64_t> ParseDateCell(std::string_view text);

// Returns the seconds since midnight of a time alone, 9:05, 13:05, 13:05:09 or 13:05:09.25 (the
// fraction is cut off); nullopt for other texts.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace muster::formats
