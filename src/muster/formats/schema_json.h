// Fields as JSON, for programs in other languages.
#pragma once

#include "muster/formats/json_fields.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// {"name", "type": "int" | "float" | "string", "list", "truncate"} and, for a field of one value
// that has one, "default".
Json DescribeField(const Field& field);

}  // namespace muster::formats
