// Numbers written as text, in a cell of CSV or a string of JSON lines: what is read as a number,
// and forms that people write and that are not read, which errors and notes name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/formats/schema.h"

namespace muster::formats {

// Returns the text without the spaces and tabs around it.
std::string_view TrimSpaces(std::string_view text);

enum class ParsedNumber { kOk, kWrongType, kOutOfRange, kNotFinite, kFraction };

// Numbers may have a '+', but no spaces around them. "3.0" and "1e3" are ints, "3.5" only with
// `truncate`. NaN and infinities are kNotFinite; what is nearer to 0 than a float can be is 0.
ParsedNumber ParseFloat(std::string_view text, float* value);
ParsedNumber ParseInt(std::string_view text, bool truncate, int64_t* value);

// Says why `text`, of which one of these functions returned `parsed`, is no value of the field: "is
// not an int (type float keeps it, truncate: true cuts it)".
std::string DescribeNotRead(const Field& field, std::string_view text, ParsedNumber parsed);

// Whether a text is a number with a comma: 1,5 and 1.234,50; 1,234 and 1,234,567.50. Not 1,2,3,
// which is a list.
bool IsCommaNumber(std::string_view text);

// Whether a text is a number, perhaps with a comma, before or after % or the sign of a currency:
// 12%, $12.50, -€3, 1.234,50 €.
bool IsNumberWithUnit(std::string_view text);

}  // namespace muster::formats
