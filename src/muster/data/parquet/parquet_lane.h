// ParquetLane: a connection to muster-parquet over which the rows of one part of a file after the
// other come, and the memory that they come in, which is used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/parquet/parquet_block.h"
#include "muster/data/parquet/parquet_program.h"
#include "muster/data/source_set.h"

namespace muster::data {

// One thread at a time; blocks may be released by any thread.
class ParquetLane : public std::enable_shared_from_this<ParquetLane> {
 public:
  explicit ParquetLane(std::unique_ptr<ParquetConnection> connection)
      : connection_(std::move(connection)) {}

  // The number of rows of each row group of a file.
  absl::StatusOr<std::vector<uint64_t>> Describe(const std::string& path);
  // The columns of a file and of the names of its folders.
  absl::StatusOr<std::vector<KnownColumn>> DescribeColumns(const std::string& path);
  // Sends a request for rows (docs/formats/parquet_rows.md) and returns them, or null after the
  // last. `columns` are how many each block has.
  absl::StatusOr<std::shared_ptr<const ParquetBlock>> AskForRows(formats::Json request,
                                                                 size_t columns);

 private:
  void Release(int64_t segment);

  const std::unique_ptr<ParquetConnection> connection_;
  std::map<int64_t, std::shared_ptr<const SharedSegment>> segments_;
  std::mutex mutex_;
  std::vector<int64_t> free_;  // of segments_; guarded by mutex_
};

}  // namespace muster::data
