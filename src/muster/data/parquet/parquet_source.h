// ParquetSource: the rows of Parquet files. A chunk is a row group, or the part of one that a shard
// takes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/data/chunk_table.h"
#include "muster/data/parquet/parquet_lane.h"
#include "muster/data/source.h"

namespace muster::data {

// The lanes to one process of muster-parquet, which is started when it is first needed. Any thread.
class ParquetLanes {
 public:
  explicit ParquetLanes(std::string python) : python_(std::move(python)) {}

  absl::StatusOr<std::shared_ptr<ParquetLane>> Take();
  // For the next Take().
  void GiveBack(std::shared_ptr<ParquetLane> lane);

 private:
  const std::string python_;
  Mutex mutex_;
  std::shared_ptr<ParquetProgram> program_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ParquetLane>> idle_ ABSL_GUARDED_BY(mutex_);
};

class ParquetSource : public RecordSource {
 public:
  // `groups` are, for each chunk of the table, the number of its row group in its file.
  ParquetSource(ChunkTable table, std::vector<int> groups, std::shared_ptr<ParquetLanes> lanes);

  const std::vector<std::string>& files() const override { return table_.names; }
  const std::vector<ChunkInfo>& chunks() const override { return table_.chunks; }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override;
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override;
  absl::Status CountBad(size_t /*chunk*/, const Chunk& /*piece*/) const override {
    return absl::OkStatus();  // a page that cannot be read is an error
  }
  // The columns of all schemas for which there are decoders are read.
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override;
  uint64_t bad_records() const override { return 0; }
  uint64_t fingerprint() const override { return table_.fingerprint; }

 private:
  class Blocks;
  class Pieces;

  const ChunkTable table_;
  const std::vector<int> groups_;
  const std::shared_ptr<ParquetLanes> lanes_;
  mutable Mutex mutex_;
  mutable std::vector<formats::Field> wanted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::data
