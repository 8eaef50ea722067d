// PredictionRows: predictions as text, a row of CSV or a JSON object for each; PredictionValues:
// one value for each, in whatever format, as the messages of a topic have them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/predictions.h"
#include "muster/formats/example.h"
#include "muster/score/prediction_columns.h"
#include "muster/score/prediction_writer.h"
#include "muster/score/text_buffer.h"

namespace muster::score {

// INVALID_ARGUMENT for predictions that the format cannot hold.
absl::Status CheckHolds(PredictionFormat format, const engine::Predictions& shape);

// One owner thread.
class PredictionRows {
 public:
  // `options` have a key; `shape` are predictions of no rows.
  PredictionRows(PredictionWriter::Options options, const engine::Predictions& shape);

  // Of CSV, with a line end; nothing for JSON.
  void AppendHeader(const engine::Predictions& shape, TextBuffer* text) const;
  // Without a line end. If there are no keys, rows are numbered from 0.
  void AppendRow(std::span<const std::string> keys, const engine::Predictions& predictions, int row,
                 TextBuffer* text);

 private:
  static void AppendCell(std::string_view cell, TextBuffer* text);
  static void AppendValue(const engine::PredictionTensor& tensor, size_t i, bool csv,
                          TextBuffer* text);

  const PredictionWriter::Options options_;
  const bool csv_;
  const std::vector<size_t> places_;
  int64_t row_ = 0;
};

// One owner thread.
class PredictionValues {
 public:
  // `options` have a key, and any format but kBatches; `predictor` makes the predictions.
  static absl::StatusOr<std::unique_ptr<PredictionValues>> Create(
      const PredictionWriter::Options& options, const engine::Predictor& predictor);
  virtual ~PredictionValues() = default;
  // Returns a value for each row, valid until the next call. `keys` has one key for each row.
  virtual absl::StatusOr<std::span<const std::string_view>> Encode(
      std::span<const std::string> keys, const engine::Predictions& predictions) = 0;
};

}  // namespace muster::score
