// BatchSource: gives a training, an evaluation or a prediction its batches: from files
// (train/input/input.h), from a user's rows or from a user's batches in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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
  // One key per row if keys were requested: the model's key or, if the model has none, the record's
  // number in the data, counted from 0. Otherwise empty.
  std::vector<std::string> keys;
  // Which records of a partition the rows are, if InputSpec::with_messages. Otherwise empty.
  std::vector<data::MessageId> messages = {};
  // One number per row if InputSpec::group names a field: rows with equal values have equal
  // numbers.
  std::vector<uint64_t> groups = {};
  data::Position position = {};  // after this batch, if the source has positions
  int64_t epoch = 0;             // counted from 0
  int shard = 0;  // of the data, if this replica reads several (train/input/shards.h)
  // Records dropped since the previous batch, because they did not fill a batch of an epoch.
  int dropped = 0;
  // Records left out since the previous batch because they are bad.
  std::vector<data::BadRecord> bad = {};
  // This is no batch: the data grows (data/growing_data.h), and has no further records yet. The
  // other members have no meaning then.
  bool is_none_yet = false;
  // Bad rows left out in the newest epoch, summed over the shards of the data.
  uint64_t bad_rows = 0;
};

// One owner thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; nullptr at the end.
  virtual absl::StatusOr<const InputBatch*> Next() = 0;
  // The rows of the batch that Next() returns, 0 at the end, if that is known without waiting.
  virtual std::optional<int> next_rows() const { return std::nullopt; }
  // The batches of the whole data in all epochs, also those before `start`; 0: unknown, or endless.
  virtual int64_t steps() const { return 0; }
  virtual int64_t epochs() const { return 0; }  // 0: unknown, or endless
  // How many of steps() precede `start`, in shards.
  virtual int64_t first_step() const { return 0; }
  // After the end: records dropped since the last batch (InputBatch::dropped).
  virtual int dropped_at_end() const { return 0; }
  // After the end: bad records left out since the last batch (InputBatch::bad).
  virtual std::span<const data::BadRecord> bad_at_end() const { return {}; }
  // The number of bad records left out up to the last batch, or to the end: those of the newest
  // epoch (they are the same in each epoch), and records that could not be read.
  virtual uint64_t bad_records() const { return 0; }
  // Of data that grows: about how many records come after the last batch; none: not known.
  virtual std::optional<uint64_t> lag() { return std::nullopt; }
  // Whether InputBatch::position can be given as `start`; checkpoints then contain it.
  virtual bool has_positions() const { return false; }
  // Warnings about the data read so far; each warning is returned once.
  virtual std::vector<std::string> ConsumeWarnings() { return {}; }
};

// Opens an input: called once per training, evaluation or prediction. `start` (may be null) is the
// position to continue from; only a source with positions gets one. `files`, `model` and everything
// that the function refers to must outlive the source.
using InputFn = std::function<absl::StatusOr<std::unique_ptr<BatchSource>>(
    io::FileSystem& files, const model::Model& model, const data::Position* start)>;

// Makes an input of a user's rows, which go through the model's feature columns. `open` is called
// with the fields that the model reads (including the label if `with_labels`) and returns a
// function that fills *rows, which is empty before each call, with the next batch; it returns false
// at the end.
using NextRows = std::function<absl::StatusOr<bool>(formats::Columns* rows)>;
using OpenRows = std::function<absl::StatusOr<NextRows>(const formats::Schema& schema)>;
InputFn RowsInput(OpenRows open, bool with_labels = true);

// Makes an input of a user's batches in the engine's form: all of them in order, `epochs` times (0:
// indefinitely).
InputFn BatchesInput(std::vector<features::FeatureBatch> batches, int64_t epochs = 1);

}  // namespace muster::train
