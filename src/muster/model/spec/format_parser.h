// Parses and prints the `format:` of a model file.
#pragma once

#include <yaml-cpp/yaml.h>

#include "muster/formats/data_format.h"
#include "muster/formats/yaml_reader.h"

namespace muster::model {

// Errors are recorded in `node`.
formats::DataFormat ParseDataFormat(const formats::YamlReader& node);

// Prints "format: {...}"; nothing if no setting is given.
void EmitDataFormat(YAML::Emitter& out, const formats::DataFormat& format);

}  // namespace muster::model
