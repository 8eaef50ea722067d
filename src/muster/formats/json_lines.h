// JSON lines: one JSON object a line, a member a field: {"age": 39, "job": "clerk", "tags": ["a"]}.
#pragma once

#include <memory>

#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// Decodes the schema's members and ignores all others. An absent or null member takes the default.
// Numbers fill int fields (whole ones, or any with Field::truncate) and float fields; strings fill
// string fields; true and false are 1 and 0. A list field takes an array, or one value.
std::unique_ptr<RowDecoder> NewJsonDecoder(const Schema& schema);

}  // namespace muster::formats
