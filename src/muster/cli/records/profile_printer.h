// A profile of data as text and JSON, for `muster records stats` and `muster init`.
#pragma once

#include "muster/data/profile/profile.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// name, type, missing, distinct, more_distinct, missing_marks; of numbers and dates min, max, mean
// and stddev; `top` commonest values.
nlohmann::ordered_json ProfileColumnJson(const data::ColumnProfile& column, size_t top);

// One object: rows, bad_rows, format and columns.
void PrintProfileJson(const data::Profile& profile, size_t top);

// A line for each column: type, missing, distinct, range, mean and deviation, commonest values.
void PrintProfileTable(const data::Profile& profile, size_t top);

}  // namespace muster::cli
