// PredictionWriter: writes predictions to a file, one row for each prediction, under the names that
// tf.estimator's head gives them (engine/predictions.h). Tensors that are the same in every row are
// left out: all_class_ids, all_classes and the classes of a multi-label head.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/io/file_system.h"

namespace muster::score {

enum class PredictionFormat {
  // With a header: KEY, then one column for each value: logits, or logits_0,logits_1,... if a row
  // has several values. A binary head's probabilities are left out, since logistic has them.
  kCsv,
  kJsonLines,  // {"KEY":...,"logits":[x],...,"classes":[">50K"]}: every tensor as a list
  kTfRecord,   // tf.Example with the same features
  kBatches,    // a stream of batches (docs/formats/batch_stream.md) with the same columns
};

// Returns the format for the end of the file's name: .csv, .jsonl or .json, .tfrecord or
// .tfrecords, .batches. INVALID_ARGUMENT for any other name.
absl::StatusOr<PredictionFormat> FormatFor(const std::string& path);

// The file appears under its name when Close() has returned OK. Until then it has a temporary name,
// under which the destructor removes it. One owner thread.
class PredictionWriter {
 public:
  struct Options {
    std::string path;  // "-": standard output (not for TFRecord)
    PredictionFormat format = PredictionFormat::kCsv;
    std::string key;           // the key's name; "": "row", and rows are numbered
    bool numeric_key = false;  // in JSON and Example the key is a number
  };
  // `predictor`, which is not kept, is the one that makes the predictions. INVALID_ARGUMENT for
  // predictions that the format cannot hold, and for TFRecord to standard output.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(
      io::FileSystem& files, const Options& options, const engine::Predictor& predictor);
  virtual ~PredictionWriter() = default;
  // `keys` has one key for each row; if it is empty, rows are numbered from 0.
  virtual absl::Status Write(std::span<const std::string> keys,
                             const engine::Predictions& predictions) = 0;
  // For the text formats: hands all rows written so far to the file or to standard output.
  virtual absl::Status Flush() { return absl::OkStatus(); }
  virtual absl::Status Close() = 0;
};

}  // namespace muster::score
