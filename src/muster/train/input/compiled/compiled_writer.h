// CompiledWriter: takes the batches of a training as they come, in any order, and writes a compiled
// file of their rows in the order of the data. A chunk is written when each of its rows has come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/features/transform.h"
#include "muster/train/input/compiled/chunk_finder.h"
#include "muster/train/input/compiled/compiled_file.h"
#include "muster/train/input/compiled/row_compiler.h"

namespace muster::train {

// One owner thread.
class CompiledWriter {
 public:
  // Rows that wait for the rest of their chunks take at most so many bytes.
  static constexpr uint64_t kMostWaiting = uint64_t{1} << 30;

  // Rows are those of `source`, whose chunks have exactly as many records as they announce.
  // `layout`: of the batches. `key`: see CompiledInfo.
  CompiledWriter(std::unique_ptr<CompiledFileWriter> file, const data::RecordSource& source,
                 CompiledLayout layout, std::string key);

  // Adds a batch of the epoch, whose rows have these numbers in the data. Returns whether all
  // chunks are written. A chunk of which an epoch gives a part only comes whole in a later one.
  // RESOURCE_EXHAUSTED if too many rows wait; FAILED_PRECONDITION for a batch of another layout.
  absl::StatusOr<bool> Add(int64_t epoch, const features::FeatureBatch& batch,
                           std::span<const uint64_t> numbers);
  // After Add() has returned true: gives the file its name.
  absl::Status Finish(std::vector<std::string> warnings);

 private:
  // The rows of a chunk that have come in this epoch.
  struct Chunk {
    uint64_t first_number = 0, records = 0;
    uint64_t missing = 0;  // rows that have not come; 0: the chunk is written
    std::string bytes = {};
    struct Row {
      uint32_t record, begin, end;  // the record in its chunk, and its bytes
    };
    std::vector<Row> rows = {};  // if rows differ in length; else each is at its record's place
  };
  void StartEpoch();
  void MakeRoom(Chunk* chunk);
  void Take(int row, uint64_t record, Chunk* chunk);
  absl::Status Write(Chunk* chunk);

  const std::unique_ptr<CompiledFileWriter> file_;
  CompiledInfo info_;
  RowCompiler compiler_;
  size_t row_bytes_ = 0;  // 0: rows differ in length
  ChunkFinder finder_;
  std::vector<Chunk> chunks_;
  size_t left_ = 0;  // chunks that are not written
  uint64_t waiting_bytes_ = 0;
  std::vector<std::string> spare_;  // memory of blocks that are written, for the next ones
  int64_t epoch_ = 0;
};

}  // namespace muster::train
