// The features of a tf.Example as JSON.
#pragma once

#include "muster/formats/example.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Returns the values as a list. Numbers become JSON numbers, except those that JSON does not have.
nlohmann::ordered_json MakeFeatureValues(const formats::FeatureText& feature);

}  // namespace muster::cli
