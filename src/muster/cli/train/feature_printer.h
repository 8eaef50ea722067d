// Prints the values that a spec's columns compute from rows, for `muster inspect --features`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"

namespace muster::cli {

struct FeaturePrinterOptions {
  std::vector<std::string> patterns;  // CSV or TFRecord files or globs
  formats::DataFormat format = {};    // settings from flags
  int64_t limit = 0;                  // the number of rows; 0: all
  bool json = false;
};

// Prints to stdout, for each row, the floats of every numeric, indicator and sequence column and
// the ids of every categorical one, with their weights. As JSON, one object per line:
// {"dense":{column:[floats]}, "ids":{column:[ids]},"weights":{column:[floats]}}, "weights" only if
// a column is weighted; floats in their shortest exact form.
absl::Status PrintFeatures(io::FileSystem& files, const model::ModelSpec& spec,
                           const FeaturePrinterOptions& options);

}  // namespace muster::cli
