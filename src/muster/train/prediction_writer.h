// PredictionWriter: predictions to a file, a row each, under the names of tf.estimator's head
// (engine/predictions.h). What is the same in every row is left out: all_class_ids, all_classes and
// multi-label's classes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/io/file_system.h"

namespace muster::train {

enum class PredictionFormat {
  kCsv,        // with a header: KEY, then a column a value: logits, or logits_0,logits_1,... where
               // a row has several. A binary head's probabilities are left out: logistic says it
  kJsonLines,  // {"KEY":...,"logits":[x],...,"classes":[">50K"]}: every tensor as a list
  kTfRecord,   // tf.Example with the same features
};

// By the file name: .csv, .jsonl or .json, .tfrecord or .tfrecords. INVALID_ARGUMENT else.
absl::StatusOr<PredictionFormat> FormatFor(const std::string& path);

// The file appears under its name when Close() returned OK; before that it has a temporary name,
// which the destructor removes. One owner thread.
class PredictionWriter {
 public:
  struct Options {
    std::string path;  // "-": standard output (CSV and JSON lines)
    PredictionFormat format = PredictionFormat::kCsv;
    std::string key;           // name of the key; "" calls it "row"
    bool numeric_key = false;  // JSON and Example: the key as a number
  };
  // `predictor` is what the predictions will come from; not kept.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(
      io::FileSystem& files, const Options& options, const engine::Predictor& predictor);
  virtual ~PredictionWriter() = default;
  // `keys`: one a row, or empty: then rows are numbered.
  virtual absl::Status Write(std::span<const std::string> keys,
                             const engine::Predictions& predictions) = 0;
  // Rows in text that were written are in the file, or on standard output.
  virtual absl::Status Flush() { return absl::OkStatus(); }
  virtual absl::Status Close() = 0;
};

}  // namespace muster::train
