// PredictionWriter: predictions to a file, a row each, under the names of tf.estimator's binary
// head.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::train {

enum class PredictionFormat {
  kCsv,        // KEY,logits,logistic,class_ids,classes with a header
  kJsonLines,  // {"KEY":...,"logits":[x],"logistic":[p],"probabilities":[1-p,p],
               //  "class_ids":[1],"classes":[">50K"]}
  kTfRecord,   // tf.Example with those features
};

// By the file name: .csv, .jsonl or .json, .tfrecord or .tfrecords. INVALID_ARGUMENT else.
absl::StatusOr<PredictionFormat> FormatFor(const std::string& path);

struct PredictionRows {
  std::span<const std::string> keys;  // rows, or empty: then rows are numbered
  std::span<const float> logits;      // rows
};

// The file appears under its name when Close() returned OK; before that it has a temporary name,
// which the destructor removes. One owner thread.
class PredictionWriter {
 public:
  struct Options {
    std::string path;  // "-": standard output (CSV and JSON lines)
    PredictionFormat format = PredictionFormat::kCsv;
    std::string key;                   // name of the key; "" calls it "row"
    bool numeric_key = false;          // JSON and Example: the key as a number
    std::vector<std::string> classes;  // two names
  };
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(io::FileSystem& files,
                                                                  const Options& options);
  virtual ~PredictionWriter() = default;
  virtual absl::Status Write(const PredictionRows& rows) = 0;
  virtual absl::Status Close() = 0;
};

}  // namespace muster::train
