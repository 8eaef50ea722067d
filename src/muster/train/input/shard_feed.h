// ShardFeed: the batches of one shard of the data, from its records or, where the same rows were
// compiled before (compiled/feature_cache.h), from their compiled file. While records are read, a
// compiled file is written of them, which the next epoch is read from.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/reader.h"
#include "muster/train/input/batch_maker.h"
#include "muster/train/input/batch_source.h"
#include "muster/train/input/compiled/compiled_writer.h"
#include "muster/train/input/compiled/feature_cache.h"

namespace muster::train {

// One owner thread, but for Stop().
class ShardFeed {
 public:
  using OpenSource = std::function<absl::StatusOr<std::shared_ptr<const data::RecordSource>>()>;

  // `maker` must outlive the feed.
  ShardFeed(const BatchMaker& maker, int shard) : maker_(maker), shard_(shard) {}

  // Reads what `reader` gives. `start`: see data::BatchReader::Create.
  void Read(std::unique_ptr<data::BatchReader> reader, const data::Position* start);
  // Reads a shard that `cache` may have, by `key`: `compiled` if it is not null, else `source`,
  // which is then compiled, unless the key is "". `open` opens the source if the compiled file is
  // damaged. `maker` makes the batches of `schema`.
  struct Cached {
    std::shared_ptr<const FeatureCache> cache = {};
    std::string key = {};
    std::function<absl::Status()> check_data = {};  // fails if the data is not that of the key
    std::shared_ptr<const CompiledFile> compiled = {};
    std::shared_ptr<const data::RecordSource> source = {};
    OpenSource open = {};
  };
  absl::Status Read(Cached cached, const data::ReaderSpec& spec, const data::Position* start);

  // Replaces the batch's features, position, epoch and shard; *columns become its rows as they were
  // read, if has_columns(). False if the feed gave no batch: it has ended(), or the rows of the
  // last batch were all bad.
  absl::StatusOr<bool> Next(formats::Columns* columns, InputBatch* batch);
  // Thread-safe. See data::BatchReader::Stop.
  void Stop();

  // Whether the last batch was read from records.
  bool has_columns() const { return has_columns_; }
  bool ended() const { return ended_; }
  std::pair<int64_t, uint64_t> at() const { return at_; }  // the epoch, and the records read in it
  const data::BatchReader& reader() const { return *reader_; }
  uint64_t bad_rows() const { return bad_rows_; }  // of the newest epoch
  // The records dropped since the last call.
  int ConsumeDropped();
  // What a user should know about the compiled file.
  std::vector<std::string> ConsumeNotes() { return std::exchange(notes_, {}); }
  // Warnings about the data that the finished compiled file keeps for later trainings.
  void KeepWarnings(const std::vector<std::string>& warnings);
  // Whether a compiled file is written that still lacks rows.
  bool compiles() const { return may_compile_ && !is_whole_; }
  // Whether a compiled file has all rows and awaits FinishCompiled().
  bool is_whole() const { return is_whole_; }
  // Finishes the compiled file if it has all rows; the next batches come from it. To be called
  // between batches, after KeepWarnings().
  absl::Status FinishCompiled();

 private:
  absl::Status ReadSource(const data::Position* start);
  absl::Status ReadCompiled(const data::Position* start);
  // Reads the source from `start` on in place of the compiled file, whose `damage` a user is told.
  absl::Status ReadDataAgain(const absl::Status& damage, const data::Position* start);
  absl::StatusOr<bool> NextCompiled(InputBatch* batch);
  // Adds the batch to the compiled file that is written.
  absl::Status Compile(const InputBatch& batch);
  void GiveUpCompiling(const absl::Status& why);
  absl::StatusOr<bool> AddToWriter(const InputBatch& batch);
  void SetReader(std::unique_ptr<data::BatchReader> reader);

  bool is_compiled() const { return compiled_ != nullptr; }

  const BatchMaker& maker_;
  const int shard_;
  Cached cached_;
  data::ReaderSpec spec_;
  std::mutex mutex_;  // guards the replacement of reader_, and stopped_
  bool stopped_ = false;
  std::unique_ptr<data::BatchReader> reader_;
  std::pair<int64_t, uint64_t> at_ = {0, 0};
  bool ended_ = false;
  bool has_columns_ = false;
  bool from_beginning_ = false;    // reader_ reads all records of the source
  uint64_t dropped_before_ = 0;    // by readers before this one
  uint64_t dropped_ = 0;           // after the last batch, by all readers
  uint64_t dropped_consumed_ = 0;  // of them
  uint64_t bad_rows_ = 0;
  std::vector<std::string> notes_, warnings_;

  std::shared_ptr<const CompiledFile> compiled_;  // that reader_ reads
  std::unique_ptr<features::FeatureTransform> compiled_transform_;
  formats::Columns compiled_rows_{CompiledSchema()};
  std::optional<data::Position> last_;  // after the last batch
  std::unique_ptr<CompiledWriter> writer_;
  bool may_compile_ = false;  // whether a compiled file is written, or begun by the next batch
  bool is_whole_ = false;     // whether it has all rows and is not finished
  std::vector<uint64_t> numbers_;
};

}  // namespace muster::train
