// The parts of a model file that describe its data: inputs, label, key, columns (docs/spec.md).
#pragma once

#include <string>

#include "muster/features/column.h"
#include "muster/formats/yaml_reader.h"
#include "muster/io/file_system.h"

namespace muster::model {

using formats::YamlReader;

// Reads "inputs", "label", "weight", "key" and "columns" of the document `root`. Vocabulary files
// are found relative to `folder`. Errors go to root.status(); the result is complete only if that
// is OK.
features::FeatureSpec ParseFeatures(io::FileSystem& files, const YamlReader& root,
                                    const std::string& folder);

}  // namespace muster::model
