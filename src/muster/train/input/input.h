// Input: turns files into feature batches, read ahead on a separate thread: source -> shuffle ->
// decode -> feature columns. Every batch carries the position after it. A stream of batches
// (data/batch_stream_reader.h) can replace files: its writer then decides batch size, order and
// end, and each Open reads the stream from its start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/growing_data.h"
#include "muster/data/prefetch.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/features/transform.h"
#include "muster/model/model.h"
#include "muster/train/input/batch_source.h"
#include "muster/train/input/class_weights.h"

namespace muster::train {

class FeatureCache;  // train/input/compiled/feature_cache.h
class SharedFeeds;

struct InputSpec {
  data::SourceSpec source;
  data::ReaderSpec reader;
  bool with_labels = true;
  bool with_keys = false;       // InputBatch::keys
  bool with_messages = false;   // InputBatch::messages, of data in partitions
  bool batch_by_batch = false;  // each is there once it is read, without those after it
  std::string group = {};       // InputBatch::groups
  bool watch_data = false;      // ConsumeWarnings() reports columns without ids or scale
  bool watch_words =
      false;  // ConsumeWarnings() reports columns with many unknown words, at the end
  std::shared_ptr<SharedFeeds> feeds =
      {};  // from which the data is read, if other trainings do too
  // The data grows (train/input/growing_input.h): its segments are read in place of what
  // source.patterns name.
  std::shared_ptr<data::GrowingData> growth = {};
  int64_t first_segment = 0;  // with which a training without a position begins
  std::shared_ptr<const FeatureCache> cache = {};  // of compiled features, read and written
  ClassWeights class_weights = {};  // of rows with labels; a user's input_fn gives weights itself
};

// A shard of the data, and where reading it begins.
struct InputShard {
  int index = 0;
  data::Shard shard = {};
  std::optional<data::Position> start = {};
};

// Batches that are handed over together: each hand-over between threads costs microseconds. The
// last one of an input may have no batch.
struct InputGroup {
  std::vector<InputBatch> batches;  // the first `count` of them
  size_t count = 0;
  std::vector<std::string> warnings;
  // After the last batch:
  int dropped_at_end = 0;
  std::vector<data::BadRecord> bad_at_end;
  uint64_t bad_rows = 0;
};

// One owner thread; reading has its own thread.
class Input : public BatchSource {
 public:
  // An exported `model` must outlive the input. `start`: the position to continue from (see
  // data::BatchReader::Create); null: the beginning.
  static absl::StatusOr<std::unique_ptr<Input>> Open(io::FileSystem& files,
                                                     const model::Model& model,
                                                     const InputSpec& spec,
                                                     const data::Position* start = nullptr);
  // Reads several shards: each batch comes from the shard that has advanced least, so that the
  // order depends on the shards' positions alone. spec.source.shard is ignored.
  static absl::StatusOr<std::unique_ptr<Input>> OpenShards(io::FileSystem& files,
                                                           const model::Model& model,
                                                           const InputSpec& spec,
                                                           std::span<const InputShard> shards);
  ~Input() override;

  // The next batch, valid until the next call; nullptr at the end. Up to max_bad_records rows that
  // do not fit are left out; errors for further ones name file, place, column and value.
  absl::StatusOr<const InputBatch*> Next() override;
  std::optional<int> next_rows() const override;

  int64_t steps() const override;
  int64_t epochs() const override { return sources_.empty() ? 0 : reader_spec_.epochs; }
  int64_t first_step() const override { return first_step_; }
  int dropped_at_end() const override { return dropped_at_end_; }
  std::span<const data::BadRecord> bad_at_end() const override { return bad_at_end_; }
  uint64_t bad_records() const override;
  // A stream is read from its start each time.
  bool has_positions() const override { return !sources_.empty(); }
  std::vector<std::string> ConsumeWarnings() override { return std::exchange(warnings_, {}); }
  // Records of one epoch; 0 for a stream, whose length is not known.
  uint64_t records() const;

  // Next() by whole groups, in place of it: replaces *group by the next one, and uses its memory
  // again. False at the end.
  absl::StatusOr<bool> NextGroup(InputGroup* group);
  // Records that could not be read, so far.
  uint64_t unread_records() const;

 private:
  class Producer;
  explicit Input(const data::ReaderSpec& reader_spec);
  // As OpenShards. With `may_be_empty` a shard may have no records; otherwise there is one shard.
  static absl::StatusOr<std::unique_ptr<Input>> OpenSources(io::FileSystem& files,
                                                            const model::Model& model,
                                                            const InputSpec& spec,
                                                            std::span<const InputShard> shards,
                                                            bool may_be_empty);
  // Adds a warning if predict could not read the model's key in this data.
  void CheckKey(io::FileSystem& files, const model::Model& model, const InputSpec& spec);
  void Start(std::unique_ptr<Producer> producer);
  int64_t GetBatches(uint64_t records) const;  // of one epoch

  const data::ReaderSpec reader_spec_;
  std::vector<std::shared_ptr<const data::RecordSource>> sources_;  // none for a stream
  int64_t first_step_ = 0;
  int dropped_at_end_ = 0;
  std::vector<std::string> warnings_;
  std::vector<data::BadRecord> bad_at_end_;
  uint64_t bad_rows_ = 0;  // InputBatch::bad_rows
  std::unique_ptr<Producer> producer_;
  std::unique_ptr<data::Prefetch<InputGroup>> prefetch_;  // uses producer_: ends before it
  InputGroup group_;
  size_t next_ = 0;
};

// Calls `input_fn` if it is set, else OpenGrowing if spec.growth is, or OpenNewestSegments of the
// records that are held back, else spec.feeds if they are
// set and the data is read from its beginning, else Input::Open.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenInput(io::FileSystem& files,
                                                       const model::Model& model,
                                                       const InputSpec& spec,
                                                       const InputFn& input_fn,
                                                       const data::Position* start = nullptr);

}  // namespace muster::train
