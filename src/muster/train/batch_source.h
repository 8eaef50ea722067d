// BatchSource: where a training, an evaluation or a prediction gets its batches from: files
// (train/input.h), a user's rows or a user's batches in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"
#include "muster/features/batch.h"
#include "muster/formats/columns.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"

namespace muster::train {

struct InputBatch {
  features::FeatureBatch features;
  std::vector<std::string> keys;  // of each row, where they were asked for; else empty
  data::Position position = {};   // behind this batch, where the source has positions
  int64_t epoch = 0;              // counted from 0
  int part = 0;                   // of the data, where that is read in parts (train/parts.h)
  // Records that the source left out since the batch before, as the rest of an epoch.
  int dropped = 0;
};

// One owner thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; nullptr at the end.
  virtual absl::StatusOr<const InputBatch*> Next() = 0;
  // Batches of the whole data, all epochs, not only from `start` on; 0: not known, or for ever.
  virtual int64_t steps() const { return 0; }
  virtual int64_t epochs() const { return 0; }      // the same
  virtual int64_t first_step() const { return 0; }  // of steps(), those before `start`; of parts
  // Behind the end: records that were left out since the last batch (InputBatch::dropped).
  virtual int dropped_at_end() const { return 0; }
  // Whether InputBatch::position can be given as `start` (then checkpoints carry it).
  virtual bool has_positions() const { return false; }
};

// Opens an input anew: called once a training, evaluation or prediction. `start` (may be null): go
// on from there; only a source with positions is given one. What it refers to must outlive the
// source.
using InputFn = std::function<absl::StatusOr<std::unique_ptr<BatchSource>>(
    io::FileSystem& files, const model::Model& model, const data::Position* start)>;

// Rows of a user, through the model's feature columns. `open` is called with the fields that the
// model reads (the label among them where `with_labels`) and gives a function that fills *rows,
// which comes cleared, with the next batch of them; false at the end.
using NextRows = std::function<absl::StatusOr<bool>(formats::Columns* rows)>;
using OpenRows = std::function<absl::StatusOr<NextRows>(const formats::Schema& schema)>;
InputFn RowsInput(OpenRows open, bool with_labels = true);

// Batches of a user as the engine takes them, `epochs` times over (0: for ever), in their order.
InputFn BatchesInput(std::vector<features::FeatureBatch> batches, int64_t epochs = 1);

}  // namespace muster::train
