// YAML <-> JSON: parts of a job file that are kept as they are (pod templates) live as JSON.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/formats/yaml_reader.h"

namespace muster::formats {

// The node as Kubernetes reads it: plain scalars by YAML 1.2's core schema (null, true, 12, 1.5),
// quoted ones as text, keys as text, in the document's order. What cannot be JSON, expands to more
// than 100,000 values (aliases), or has a key over 1,024 characters goes to reader.Fail() and gives
// null.
Json YamlToJson(const YamlReader& reader);

// Block-style YAML that YamlToJson(parse) gives back as `value`. Texts are quoted where plain ones
// would read as something else.
std::string JsonToYaml(const Json& value);

}  // namespace muster::formats
