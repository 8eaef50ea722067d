// The parts of a model file that say what is learned: head, metrics (docs/spec.md).
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/model/model_spec.h"

namespace muster::model {

// Reads "head" and "metrics" of the document `root` into *spec and gives spec->features.label,
// which is parsed already, the form that the head wants. Errors go to root.status().
void ParseHead(const formats::YamlReader& root, ModelSpec* spec);

// What the pieces of a whole spec say of each other: words and classes, metrics and head.
// INVALID_ARGUMENT.
absl::Status CheckHead(const ModelSpec& spec);

}  // namespace muster::model
