// What a spec's columns make of rows, for `muster inspect --features`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/model_spec.h"

namespace muster::cli {

struct FeaturePrinterOptions {
  std::vector<std::string> patterns;  // CSV or TFRecord files or globs
  int64_t limit = 0;                  // rows; 0: all
  bool json = false;
};

// Prints to stdout, for each row, every numeric and indicator column's floats and every categorical
// column's ids. As JSON: {"dense":{column:[floats]},"ids":{column:[ids]}} a line, floats in their
// shortest exact form.
absl::Status PrintFeatures(io::FileSystem& files, const model::ModelSpec& spec,
                           const FeaturePrinterOptions& options);

}  // namespace muster::cli
