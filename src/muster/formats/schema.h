// A Schema describes the columns of a table; it is the same for CSV, tf.Example and other sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/dates.h"

namespace muster::formats {

enum class ValueType { kInt, kFloat, kString };  // int64, float32, bytes

std::string_view ValueTypeName(ValueType type);  // "int", "float", "string"

// One value; its index is its type (see ValueType).
using Value = std::variant<int64_t, float, std::string>;

struct Field {
  std::string name;
  ValueType type = ValueType::kString;
  // False: exactly one value per row. True: any number of values, including none.
  bool list = false;
  // Separates the values of a list in a CSV cell; NUL: a cell is one value.
  char separator = '|';
  // For kInt: "34.5" and 34.5 are read as 34 (rounded towards zero) and are not an error.
  bool truncate = false;
  // For kInt: a text that is a date or a time is read as seconds since 1970 or midnight (dates.h),
  // in CSV, JSON lines and tf.Examples; numbers are not changed.
  bool date = false;
  DateOrder date_order = DateOrder::kUnknown;  // of a date such as 11/24/2026
  // The value for a row that has none (an empty CSV cell, an absent or empty feature, a `missing`
  // value). Without a default such a row is an error; ModelSpec gives strings the default "". Lists
  // have no default.
  bool has_default = false;
  Value default_value;
  // Values that count as missing in every format, such as "?", "NA" or "-999" (missing.h).
  std::vector<std::string> missing;
  // For scalars with a default: Column::missing marks the rows that have no value and got the
  // default.
  bool mark_missing = false;

  friend bool operator==(const Field&, const Field&) = default;
};

struct Schema {
  std::vector<Field> fields;

  // Returns the index of a field, or -1.
  int Find(std::string_view name) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

}  // namespace muster::formats
