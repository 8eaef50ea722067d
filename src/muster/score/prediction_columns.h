// PredictionColumns: predictions as rows of columns, for formats that are written by column.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/formats/columns.h"
#include "muster/score/prediction_writer.h"

namespace muster::score {

// The indices in `shape`, which has no rows, of the tensors that are written: not those that are
// the same in every row and, in CSV, not the probabilities that `logistic` has already.
std::vector<size_t> FindWrittenTensors(const engine::Predictions& shape, bool csv);

// One owner thread.
class PredictionColumns {
 public:
  // The options' key is not empty. The key is the first column.
  PredictionColumns(PredictionWriter::Options options, const engine::Predictions& shape);

  const formats::Schema& schema() const { return schema_; }
  // The rows, which live until the next call. `keys` is as for PredictionWriter::Write.
  absl::StatusOr<const formats::Columns*> Fill(std::span<const std::string> keys,
                                               const engine::Predictions& predictions);

 private:
  absl::Status Append(const engine::Predictions& predictions, int row, const std::string& key);

  const PredictionWriter::Options options_;
  const std::vector<size_t> places_;
  const formats::Schema schema_;
  formats::Columns columns_;
  int64_t row_ = 0;
};

}  // namespace muster::score
