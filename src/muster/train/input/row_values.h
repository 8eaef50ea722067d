// The values of one field, a value a row, as keys and as groups of rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/formats/columns.h"
#include "muster/formats/schema.h"

namespace muster::train {

// Appends the values of `field`, which is no list, as text.
void PrintValues(const formats::Columns& rows, const formats::Schema& schema, int field,
                 std::vector<std::string>* values);

// Appends a number for each value of `field`: equal ones for equal values. Two different strings
// share a number with a probability of 1 / 2^64.
void NumberValues(const formats::Columns& rows, const formats::Schema& schema, int field,
                  std::vector<uint64_t>* numbers);

}  // namespace muster::train
