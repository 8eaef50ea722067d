// A Schema describes the columns of a table; it is the same for CSV, tf.Example and other sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/base/status.h"

namespace muster::formats {

enum class ValueType { kInt, kFloat, kString };  // int64, float32, bytes

std::string_view ValueTypeName(ValueType type);  // "int", "float", "string"

// One value, of the type that its index says (see ValueType).
using Value = std::variant<int64_t, float, std::string>;

struct Field {
  std::string name;
  ValueType type = ValueType::kString;
  // False: exactly one value a row. True: any number, also none.
  bool list = false;
  // Separates the values of a list in a CSV cell.
  char separator = '|';
  // kInt only: "34.5" and 34.5 are read as 34 (towards zero) instead of being an error.
  bool truncate = false;
  // kInt only: a text that is a date is read as seconds since 1970 (dates.h), in CSV, JSON lines
  // and tf.Examples; numbers stay what they are.
  bool date = false;
  // Used for a row that has no value (an empty CSV cell, an absent or empty feature, a `missing`
  // value). Without a default such a row is an error; ModelSpec gives strings the default "". Never
  // for lists.
  bool has_default = false;
  Value default_value;
  // Values that count as missing in every format, such as "?", "NA" or "-999" (missing.h).
  std::vector<std::string> missing;
  // For scalars with a default: Column::missing says in which rows the default stands for no value.
  bool mark_missing = false;

  friend bool operator==(const Field&, const Field&) = default;
};

struct Schema {
  std::vector<Field> fields;

  // Position of a field, or -1.
  int Find(std::string_view name) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

}  // namespace muster::formats
