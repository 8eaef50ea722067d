// JSON lines: one JSON object per line, with one member per field: {"age": 39, "job": "clerk",
// "tags": ["a"]}.
#pragma once

#include <memory>

#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// Makes a decoder of the schema's members, which ignores all others. An absent or null member gives
// the default, and so does a missing value (missing.h), which may be a text even in a field of
// numbers: {"age": "NA"}. Numbers fill int fields (integers, or any number with Field::truncate)
// and float fields; they may be in quotes, as text_number.h reads them, and empty quotes are no
// value. Strings fill string fields, and int fields with Field::date; true and false are 1 and 0. A
// list field takes an array or a single value.
std::unique_ptr<RowDecoder> NewJsonDecoder(const Schema& schema);

}  // namespace muster::formats
