// Parses the parts of a model file about what is learned: head, metrics (docs/spec.md).
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/model/spec/model_spec.h"

namespace muster::model {

// Reads "head" and "metrics" of the document `root` into *spec, and sets the form of
// spec->features.label, which is already parsed, as the head requires. Errors go to root.status().
void ParseHead(const formats::YamlReader& root, ModelSpec* spec);

// Checks that the parts of a complete spec agree: words and classes, metrics and head.
// INVALID_ARGUMENT.
absl::Status CheckHead(const ModelSpec& spec);

}  // namespace muster::model
