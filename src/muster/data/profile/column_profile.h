// ColumnProfiler: finds out what the values of one column are: numbers, dates or text, which texts
// stand for a missing value, how many values are distinct.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/data/number_sums.h"
#include "muster/formats/dates.h"
#include "muster/formats/schema.h"

namespace muster::data {

// At most this many distinct values of a column, and this many bytes of them, are counted by value;
// beyond that it is only known that there are more. Bounds the memory of a column.
constexpr size_t kMaxProfiledValues = 50'000;
constexpr size_t kMaxProfiledBytes = size_t{8} << 20;

struct ColumnProfile {
  enum class Kind { kNothing, kInt, kFloat, kDate, kTime, kText };
  // What the values of a text are that is read as no number and no date: numbers with a comma in
  // them, such as 1,5 and 1,234.50, or with a sign, such as 12% and $3.50, dates of which month and
  // day could be exchanged, dates whose year is too short (1.2.26), times in other forms than
  // dates.h reads (25:30), or numbers beside a few other words.
  enum class Unread {
    kNothing,
    kCommaNumbers,
    kNumbersWithUnit,
    kMonthOrDay,
    kShortDates,
    kTimes,
    kNumbersAndWords
  };
  using Counted = std::pair<std::string, uint64_t>;  // a value and how often it occurs

  std::string name;
  formats::ValueType stored = formats::ValueType::kString;  // the type in the data; CSV stores text
  Kind kind = Kind::kNothing;
  uint64_t rows = 0;
  uint64_t missing = 0;  // rows without a value; in lists only empty ones
  // Texts that stand for a missing value, such as "?"; `missing` includes their rows.
  std::vector<Counted> marks;
  uint64_t values = 0;  // the number of values without marks
  uint64_t least_in_row = 0, most_in_row = 0;
  char separator = '\0';       // between the values of a list in a cell of CSV; '\0': no such list
  NumberSums numbers = {};     // kInt and kFloat; kDate and kTime: seconds (formats/dates.h)
  NumberSums logarithms = {};  // sums of log(1 + x), if no number is negative
  formats::DateOrder date_order = formats::DateOrder::kUnknown;  // kDate: of 11/24/2026
  uint64_t distinct = 0;
  bool more_distinct = false;        // there are more than `distinct`
  bool never_twice = false;          // no value occurred twice, among those that were counted
  bool ascending = false;            // numbers: each is larger than the one before
  std::vector<Counted> words;        // distinct values as text, most frequent first; then by text
  Unread unread = Unread::kNothing;  // kText: the form of nearly all values
  std::string unread_value;          // the first value of that form, as an example
  uint64_t numbers_in_text = 0;      // kNumbersAndWords: how many values are numbers
  std::string grouped_number;        // a number, if all points may be those of thousands: 2.030
  std::vector<Counted> odd_words;    // kNumbersAndWords: the others, most frequent first

  // Sets `words`, in any order, and what is counted by them.
  void SetWords(std::vector<Counted> counted);
  bool is_list() const { return most_in_row > 1; }
  bool is_number() const { return kind == Kind::kInt || kind == Kind::kFloat; }
  bool is_seconds() const { return kind == Kind::kDate || kind == Kind::kTime; }
};

// Returns "nothing", "int", "float", "date", "time" or "text".
std::string_view KindName(ColumnProfile::Kind kind);

// Returns a number of `column` for people: of a column of ints without an exponent and, from 1e5
// on, without a fraction; else with `digits` digits.
std::string NumberText(const ColumnProfile& column, double value, int digits);

// One owner thread.
class ColumnProfiler {
 public:
  // `dates` is the order of dates such as 11/12/2026, where it cannot be found: all are below 13.
  ColumnProfiler(std::string name, formats::ValueType stored,
                 formats::DateOrder dates = formats::DateOrder::kUnknown);

  // Add takes one value as text; EndRow must follow the values of each row.
  void Add(std::string_view value);
  void EndRow(uint64_t values_in_row);
  ColumnProfile Finish() const;

 private:
  // Dates as one of the two orders reads them.
  struct OrderedDates {
    uint64_t count = 0;
    NumberSums seconds = {};
  };

  void AddOther(std::string_view value);
  // Whether the value may be a date with an order.
  bool AddOrderedDate(std::string_view value);
  // The order that reads all values that are dates; kUnknown if both do, or none.
  formats::DateOrder FindOrder() const;
  void AddUnread(std::string_view value);
  void FindUnread(ColumnProfile* profile) const;
  void AddNumber(double value);
  void AddCompactDate(std::string_view digits);
  bool AreCompactDates() const;
  // Whether `count` counts all values except marks, which become *marks.
  bool IsAllBut(uint64_t count, std::vector<ColumnProfile::Counted>* marks) const;
  ColumnProfile::Kind FindKind(std::vector<ColumnProfile::Counted>* marks) const;

  ColumnProfile profile_;
  absl::flat_hash_map<std::string, uint64_t> counts_;
  size_t bytes_ = 0;
  uint64_t values_ = 0;
  uint64_t ints_ = 0, floats_ = 0, dates_ = 0, times_ = 0;
  uint64_t compact_dates_ = 0;  // ints that are dates without separators: 20261124
  NumberSums compact_seconds_ = {};
  uint64_t ordered_dates_ = 0;  // those of either order
  OrderedDates month_first_, day_first_;
  const formats::DateOrder preferred_order_;
  uint64_t codes_ = 0;       // ints with leading zeros or over 2^53, as codes and IDs have
  uint64_t huge_ = 0;        // those over 2^53
  std::string huge_number_;  // the first of them
  uint64_t points_ = 0, grouped_ = 0;  // numbers with a point, and those of the form 2.030
  std::string grouped_number_;
  uint64_t comma_numbers_ = 0, with_unit_ = 0, month_or_days_ = 0, unread_times_ = 0;
  // the first of each
  std::string comma_number_, number_with_unit_, month_or_day_, unread_time_;
  // values that are neither number nor date, up to a limit
  std::map<std::string, uint64_t, std::less<>> others_;
  bool more_others_ = false;
  NumberSums numbers_, logarithms_, seconds_;
  bool negative_ = false;
  bool ascending_ = true;
};

}  // namespace muster::data
