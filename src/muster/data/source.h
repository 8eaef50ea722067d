// RecordSource: the records of a set of files, as an ordered table of chunks that can be read in
// any order. Members: TFRecord and CSV files (NewFileSource); one conformance suite
// (data/source_conformance.h).
//
// A chunk is what is read and held at once: about kChunkBytes of whole records. Where a file cannot
// be cut anywhere (TFRecord, quoted CSV), the cuts come from its index (FILE.index, written by
// `muster records`, docs/formats/record_index.md) or from one scan at Open; a compressed file
// is one chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

enum class ShardBy { kFile, kRecord };

// Part `index` of `count`. By file: files index, index + count, ... of the sorted list. By record:
// a contiguous share of the records, all shares within one record of each other.
struct Shard {
  int index = 0;
  int count = 1;
  ShardBy by = ShardBy::kFile;
};

struct SourceSpec {
  std::vector<std::string> patterns;  // globs; files sorted within each
  Shard shard;
};

// Records of one chunk, in file order. Immutable, shared by the batches that point into it.
struct Chunk {
  std::string file;
  std::vector<std::string_view> records;  // into `bytes`
  std::vector<uint64_t> offsets;          // of each record in its (uncompressed) file, for messages
  std::string bytes;
};

struct ChunkInfo {
  int file = 0;
  uint64_t begin = 0, end = 0;  // bytes in the (uncompressed) file
  uint64_t records = 0;
  uint64_t first_record = 0;  // records of the file to skip at the chunk's start (sharding)
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual const std::vector<std::string>& files() const = 0;
  virtual const std::vector<ChunkInfo>& chunks() const = 0;
  uint64_t records() const;  // of this shard
  // Thread-safe. A bad record (CRC) is DATA_LOSS unless `max_bad` > 0 was given at Open: then it is
  // left out and counted.
  virtual absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const = 0;
  // A decoder for this source's records into `schema`.
  virtual absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const = 0;
  virtual uint64_t bad_records() const = 0;
  // Identifies files and sizes, so that a position is not applied to other data.
  virtual uint64_t fingerprint() const = 0;
};

// CSV when the name ends in .csv or .csv.gz, else TFRecord.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records = 0);

}  // namespace muster::data
