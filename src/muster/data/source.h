// RecordSource: the records of a set of files, as an ordered table of chunks that can be read in
// any order. Members: TFRecord files (tfrecord_source.cc) and text files (text_source.cc: CSV, JSON
// lines); one conformance suite (data/source_conformance.h).
//
// A chunk is what is read and held at once: about kChunkBytes of whole records. Where a file cannot
// be cut anywhere (TFRecord, quoted CSV), the cuts come from its index (data/record_index.h,
// written by `muster records`) or from one scan at Open; a compressed file is one chunk, which can
// also be streamed in pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/record_index.h"
#include "muster/formats/csv.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

enum class ShardBy { kFile, kRecord };

// Part `index` of `count`. By file: files index, index + count, ... of the sorted list. By record:
// a contiguous share of the records, all shares within one record of each other; or, with
// `multiple`, each beginning at a multiple of so many, all within so many of each other.
struct Shard {
  int index = 0;
  int count = 1;
  ShardBy by = ShardBy::kFile;
  int multiple = 1;
};

struct SourceSpec {
  std::vector<std::string> patterns;  // globs; files sorted within each
  Shard shard = {};
  formats::CsvOptions csv = {};
};

// Records of one chunk or of a piece of it, in file order. Immutable, shared by the batches that
// point into it.
struct Chunk {
  std::string file;
  FileFormat format = FileFormat::kTfRecord;
  std::vector<std::string_view> records;  // into `bytes`
  // Of each record, for messages: its byte in the (uncompressed) file, or its line in a CSV file.
  std::vector<uint64_t> offsets;
  std::string bytes;

  // "FILE: record at byte N" or "FILE:LINE".
  std::string Where(size_t record) const;
};

struct ChunkInfo {
  int file = 0;
  uint64_t begin = 0, end = 0;  // bytes in the (uncompressed) file
  uint64_t records = 0;         // broken ones included
  uint64_t first_record = 0;    // records to skip at the chunk's start (sharding)
  uint64_t line = 0;            // CSV: the line at `begin`
  bool compressed = false;
};

// The records of one chunk, a piece of about kChunkBytes at a time. One owner thread.
class ChunkStream {
 public:
  virtual ~ChunkStream() = default;
  // Null at the end.
  virtual absl::StatusOr<std::shared_ptr<const Chunk>> Next() = 0;
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual const std::vector<std::string>& files() const = 0;
  virtual const std::vector<ChunkInfo>& chunks() const = 0;
  uint64_t records() const;  // of this shard
  // Thread-safe. A bad record (CRC) is DATA_LOSS unless `max_bad` > 0 was given at Open: then it is
  // left out and counted. Holds all of the chunk: a compressed file whole.
  virtual absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const = 0;
  // The same records in pieces: memory stays flat for a compressed file too. Thread-safe; the
  // source must outlive the stream.
  virtual absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const = 0;
  // A decoder for this source's records into `schema`.
  virtual absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const = 0;
  // Different bad records met so far; reading one again does not count it again.
  virtual uint64_t bad_records() const = 0;
  // Identifies files, sizes and cuts, so that a position is not applied to other data. Folders do
  // not matter.
  virtual uint64_t fingerprint() const = 0;
};

// CSV when the names end in .csv or .csv.gz, JSON lines when in .jsonl, else TFRecord (one source
// holds one kind; CSV files must have the same header). NOT_FOUND for a pattern without files;
// INVALID_ARGUMENT when the files hold no record at all. `files` must outlive the source.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records = 0);

// Several shards of the same data, each as OpenSource gives it (spec.shard is not read); one
// without records is no error while another has some. Files are looked for and indexed once.
absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(io::FileSystem& files,
                                                                      const SourceSpec& spec,
                                                                      std::span<const Shard> shards,
                                                                      uint64_t max_bad_records = 0);

}  // namespace muster::data
