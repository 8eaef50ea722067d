// Converts YAML to JSON and back: parts of a job file that are passed on unchanged (pod templates)
// are kept as JSON.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/formats/yaml_reader.h"

namespace muster::formats {

// Converts the node as Kubernetes reads it: plain scalars by YAML 1.2's core schema (null, true,
// 12, 1.5), quoted ones as text, keys as text, in the document's order. A node that cannot be JSON,
// expands to more than 100,000 values (aliases), or has a key over 1,024 characters is reported to
// reader.Fail(), and the result is null.
Json YamlToJson(const YamlReader& reader);

// Prints block-style YAML that YamlToJson turns into `value` again. Texts are quoted if they would
// otherwise be read as something else.
std::string JsonToYaml(const Json& value);

}  // namespace muster::formats
