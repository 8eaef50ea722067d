// Parses "model" of a model file (docs/spec.md): its type, its parts and their optimizers.
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Reads `node` into *spec. Errors go to node.status().
void ParseModel(const formats::YamlReader& node, ModelSpec* spec);

// Checks that the parts of a complete spec fit its columns and its head. INVALID_ARGUMENT.
absl::Status CheckParts(const ModelSpec& spec);

}  // namespace muster::model
