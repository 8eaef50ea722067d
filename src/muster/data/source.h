// RecordSource: the records of a set of files, or of the partitions of a log, as an ordered table
// of chunks that can be read in any order. Implementations: TFRecord files (tfrecord_source.cc),
// text files (text_source.cc: CSV, JSON lines), Parquet files (parquet/), partitions of Kafka
// (kafka/) and, in tests, an in-memory log (memory_log.h). All pass the conformance suite
// data/source_conformance.h.
//
// A chunk is the unit that is read and held at once: about kChunkBytes of whole records. If a file
// cannot be cut at arbitrary places (TFRecord, quoted CSV), the cuts come from its index
// (data/record_index.h, written by `muster records`) or from one scan when it is opened. A
// compressed file is one chunk, which can also be streamed in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/record_index.h"
#include "muster/formats/data_format.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

class SourceSet;  // data/source_set.h
// Kinds of data that is not in files, by the scheme of their patterns ("kafka" of "kafka://...").
using SourceSchemes = std::map<std::string, std::shared_ptr<const SourceSet>, std::less<>>;

enum class ShardBy { kFile, kRecord };

// Part `index` of `count` of the data. By file: files (or partitions) index, index + count, ... of
// the list. By record: a contiguous share of the announced records, all shares within one record of
// each other. With `multiple`, each share begins at a multiple of it, and all are within `multiple`
// records of each other.
struct Shard {
  int index = 0;
  int count = 1;
  ShardBy by = ShardBy::kFile;
  int multiple = 1;
};

// A part of the data (data/held_back.h).
struct HeldBack {
  double share = 0;      // of the records that is held back for evaluations; 0: none
  bool is_read = false;  // whether these records are read; otherwise all others are
  friend bool operator==(const HeldBack&, const HeldBack&) = default;
};

// A record that was left out because it cannot be read or does not fit the schema.
struct BadRecord {
  uint64_t number = 0;  // its number in the data, counted from 0
  std::string where;    // as Chunk::Where
  std::string bytes;    // as in the file; "" for a row of a stream of batches or of columns
  absl::Status why;
};
// Returns the error `why` of a record. If `allowed` is not 0, appends that no more than `allowed`
// bad records may be left out.
absl::Status TooManyBad(const absl::Status& why, uint64_t allowed);
// Whether the error is that of a bad record, and no bad record was allowed to be left out.
bool MayBeLeftOut(const absl::Status& error);
// Called on the thread that uses the records; within a file, in the order of its records.
using TakeBadRecord = std::function<void(BadRecord record)>;

struct SourceSpec {
  std::vector<std::string> patterns;  // globs, each with its files sorted; or names with a scheme
  Shard shard = {};
  HeldBack held_back = {};
  formats::DataFormat format = {};  // settings that it lacks are found from the files' content
  // Columns that rows without a header may lack, such as the label of data to predict: they are
  // missing if the first row of the first file has that many cells fewer than `format.columns`.
  std::vector<std::string> may_lack = {};
  // The number of the first record of the shard's first file. It is not 0 if shards are files and
  // other files come before. Shards by record compute it themselves.
  uint64_t first_number = 0;
  bool may_be_empty = false;           // no records at all are not an error
  TakeBadRecord take_bad_record = {};  // called once for each record that the source leaves out
  // Called by each Open with what the user should know about the format that was found.
  std::function<void(const std::string& note)> note = {};
  SourceSchemes schemes = {};  // patterns with other schemes or none are files
};

// A record of a partition.
struct MessageId {
  uint64_t offset = 0;
  std::optional<std::string> key = {};
};

// What Chunk::offsets counts.
enum class RecordPlace : uint8_t { kByte, kLine, kOffset, kRow };

// The records of one chunk or of a piece of it, in the order of the file or partition. Immutable,
// and shared by the batches that point into it.
struct Chunk {
  std::string file;  // or the name of the partition
  RecordPlace place = RecordPlace::kByte;
  std::vector<std::string_view> records;  // into `bytes`
  // For messages: each record's byte in the (uncompressed) file, its line in a text file, its
  // offset in a partition, or its row, counted from 1, in a file of columns. They ascend, but not
  // always by one.
  std::vector<uint64_t> offsets;
  std::string bytes;
  // Of a partition: each record's key, into `bytes`; std::nullopt: it has none. Empty: no record
  // has one.
  std::vector<std::optional<std::string_view>> keys = {};
  // What records of a file of columns refer to; their bytes mean something to its decoder only.
  std::vector<std::shared_ptr<const void>> memory = {};
  int layout = 0;                // layout of the records (RowDecoder::UseLayout)
  uint64_t first_number = 0;     // the first record's number in the data, if none were left out
  std::vector<size_t> left_out;  // per bad record: the index of the next of `records`; ascending
  std::vector<BadRecord> bad;    // left out but not yet counted (RecordSource::CountBad)

  // The record's number in the data; bad records count too. Each record has a different number, and
  // the numbers ascend in the order of the data. If chunks have fewer records than announced, some
  // numbers belong to no record.
  uint64_t Number(size_t record) const;
  // Returns "FILE: record at byte N", "FILE:LINE", "TOPIC/3: offset N" or "FILE: row N".
  std::string Where(size_t record) const;
};

struct ChunkInfo {
  int file = 0;                 // index in RecordSource::files()
  uint64_t begin = 0, end = 0;  // bytes in the (uncompressed) file, or offsets in the partition
  // The announced number of records, including broken ones: exact for files, an upper bound for a
  // log, where some offsets have no record. Shares by record, the number of steps and progress are
  // computed from it; reading returns the records that exist.
  uint64_t records = 0;
  uint64_t first_record = 0;   // announced records to skip at the chunk's start (for sharding)
  uint64_t first_number = 0;   // the number in the data of the first record that is not skipped
  uint64_t first_in_item = 0;  // the same record's number in its file or partition, as announced
  uint64_t line = 0;           // CSV: the line at `begin`
  bool compressed = false;
};

// The records of one chunk, in pieces of about kChunkBytes. One owner thread.
class ChunkStream {
 public:
  virtual ~ChunkStream() = default;
  // Returns null at the end.
  virtual absl::StatusOr<std::shared_ptr<const Chunk>> Next() = 0;
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual const std::vector<std::string>& files() const = 0;  // or partitions
  virtual const std::vector<ChunkInfo>& chunks() const = 0;
  uint64_t records() const;  // of this shard, as announced
  // Says that a Read of the chunk follows at once. Sources whose chunks wait for each other give
  // them in the order of these calls. Thread-safe.
  virtual void WillRead(size_t /*chunk*/) const {}
  // Thread-safe. Returns the entire chunk: for a compressed file, all of it. Bad records (CRC) are
  // left out. A chunk with more bad records than were allowed when the source was opened may end
  // after them.
  virtual absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const = 0;
  // Returns the records that Read returns, in pieces: memory stays constant for a compressed file
  // too. Thread-safe; the source must outlive the stream.
  virtual absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const = 0;
  // Counts the bad records of a chunk, or of a piece of it, that Read or Stream returned, and hands
  // each to spec.take_bad_record; those that were counted before are not counted again. One thread
  // must call it before it uses the piece, so that the count does not depend on how early a chunk
  // was read. If there are more than were allowed, returns DATA_LOSS for the first one that was too
  // many.
  virtual absl::Status CountBad(size_t chunk, const Chunk& piece) const = 0;
  // Of records in partitions: their type and, of rows of CSV, the names of the cells, if they have
  // any.
  virtual formats::DataFormat format() const { return {}; }
  // Whether records are in partitions: Chunk::offsets then names a record in whatever range.
  virtual bool has_offsets() const { return false; }
  // Returns a decoder of this source's records into `schema`.
  virtual absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const = 0;
  // The number of different bad records counted so far.
  virtual uint64_t bad_records() const = 0;
  // Identifies files, sizes and cuts, so that a position is not applied to other data. Folders do
  // not count.
  virtual uint64_t fingerprint() const = 0;
};

// Returns a stream of one piece, which `source` reads at once. `source` must outlive it.
std::unique_ptr<ChunkStream> NewOnePieceStream(const RecordSource& source, size_t chunk);

// Opens the data that the patterns name, of the kind that ChooseSourceSet finds. Settings that
// spec.format lacks are found from a file's content (data/file_rules.h). All files must have one
// format, and CSV files the same columns, in any order. NOT_FOUND for a pattern without data;
// INVALID_ARGUMENT if there are no records, unless spec.may_be_empty. `files` must outlive the
// source.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records = 0);

// Opens several shards of the same data, each as OpenSource does (spec.shard is not used). A shard
// without records is not an error if another has some. Files are listed and indexed once.
absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(io::FileSystem& files,
                                                                      const SourceSpec& spec,
                                                                      std::span<const Shard> shards,
                                                                      uint64_t max_bad_records = 0);

}  // namespace muster::data
