// Prints a profile of data as text and JSON, for `muster records stats` and `muster init`.
#pragma once

#include <string>

#include "muster/data/profile/profile.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Returns name, type, missing, distinct, more_distinct and missing_marks; for numbers and dates
// also min, max, mean and stddev; and the `top` most frequent values.
nlohmann::ordered_json ProfileColumnJson(const data::ColumnProfile& column, size_t top);

// Columns of a terminal that a column's name takes in a table, and the name with spaces after it up
// to `columns` of them. Control characters are escaped.
size_t NameColumns(const std::string& name);
std::string PadName(const std::string& name, size_t columns);

// Prints one object: rows, bad_rows, format and columns.
void PrintProfileJson(const data::Profile& profile, size_t top);

// Prints a line for each column: type, missing, distinct, range, mean and deviation, most frequent
// values.
void PrintProfileTable(const data::Profile& profile, size_t top);

}  // namespace muster::cli
