// FileSource: what all sources over files have in common: open files, reused memory of chunks,
// counts of bad records.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/data/chunk_table.h"
#include "muster/data/source.h"

namespace muster::data {

// Keeps the memory of chunks that are no longer used, for new chunks: its pages are already mapped.
// Thread-safe; chunks may outlive the owner of the pool.
class ChunkPool : public std::enable_shared_from_this<ChunkPool> {
 public:
  // Returns a chunk without records, whose `bytes` have unspecified contents.
  std::shared_ptr<Chunk> Get();

 private:
  void Return(std::unique_ptr<Chunk> chunk);

  Mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> free_ ABSL_GUARDED_BY(mutex_);
};

class FileSource : public RecordSource {
 public:
  // `files` are those that this shard takes, in order.
  FileSource(io::FileSystem& file_system, const std::vector<IndexedItem>& files,
             const SourceSpec& spec, uint64_t max_bad_records);

  const std::vector<std::string>& files() const override { return table_.names; }
  const std::vector<ChunkInfo>& chunks() const override { return table_.chunks; }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const final;
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const final;
  absl::Status CountBad(size_t chunk, const Chunk& piece) const override;
  uint64_t bad_records() const override;
  uint64_t fingerprint() const override { return table_.fingerprint; }

 protected:
  // Cuts `piece->bytes`, a chunk of an uncompressed file, into records.
  virtual absl::Status Cut(size_t chunk, Chunk* piece) const = 0;
  // Reads a compressed file from start to end, in pieces of about `piece_bytes`.
  virtual absl::StatusOr<std::unique_ptr<ChunkStream>> StreamCompressed(
      size_t chunk, std::shared_ptr<const io::RandomAccessFile> file,
      uint64_t piece_bytes) const = 0;

  // A chunk without records, with the properties of the file's pieces.
  virtual std::shared_ptr<Chunk> NewPiece(size_t chunk) const;
  // How many bad records are allowed. A piece ends after one more, and is then not used.
  uint64_t max_bad_records() const { return max_bad_records_; }
  absl::StatusOr<std::shared_ptr<const io::RandomAccessFile>> OpenFile(int file) const;

 private:
  absl::StatusOr<std::shared_ptr<const Chunk>> ReadCompressed(
      size_t chunk, const std::shared_ptr<const io::RandomAccessFile>& file) const;

  io::FileSystem& file_system_;
  const SourceSpec spec_;
  const uint64_t max_bad_records_;
  const ChunkTable table_;
  const std::shared_ptr<ChunkPool> pool_;
  mutable Mutex mutex_;
  mutable std::map<int, std::shared_ptr<const io::RandomAccessFile>> open_ ABSL_GUARDED_BY(mutex_);
  // By chunk: all bad records with lower numbers than this one have been counted.
  mutable std::map<size_t, uint64_t> counted_before_ ABSL_GUARDED_BY(mutex_);
  mutable uint64_t bad_records_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The implementations; OpenSource chooses one.
std::unique_ptr<RecordSource> NewTfRecordSource(io::FileSystem& file_system,
                                                const std::vector<IndexedItem>& files,
                                                const SourceSpec& spec, uint64_t max_bad_records);
absl::StatusOr<std::unique_ptr<RecordSource>> NewTextSource(io::FileSystem& file_system,
                                                            const FileRules& rules,
                                                            const std::vector<IndexedItem>& files,
                                                            const SourceSpec& spec,
                                                            uint64_t max_bad_records);

}  // namespace muster::data
