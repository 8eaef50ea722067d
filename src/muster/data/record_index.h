// RecordIndex: where one file can be cut between records, and how many records it has, so that the
// file can be read in chunks in any order. It is built while the file is written (muster records),
// or by one scan. It is stored beside the file under a hidden name, so that programs that read all
// visible files of a folder do not take it for data. See docs/formats/record_index.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/compression.h"
#include "muster/formats/csv.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"

namespace muster::data {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

using formats::FileFormat;

// How the bytes of one file are cut into records.
struct FileRules {
  FileFormat format = FileFormat::kTfRecord;
  formats::Compression compression = formats::Compression::kNone;
  formats::CsvOptions csv = {};  // text; JSON lines are rows without quotes or header
};

struct IndexedChunk {
  uint64_t begin = 0;    // byte in the (uncompressed) file; its end is the next one's begin
  uint64_t records = 0;  // records that start in it, including broken ones
  uint64_t line = 0;     // text: the line (1-based) at `begin`
  friend bool operator==(const IndexedChunk&, const IndexedChunk&) = default;
};

struct RecordIndex {
  FileFormat format = FileFormat::kTfRecord;
  formats::Compression compression = formats::Compression::kNone;
  char delimiter = ',';    // CSV
  uint8_t rows = 0;        // text: how rows are cut (RowRules)
  uint64_t file_size = 0;  // on disk
  uint64_t end = 0;        // bytes, uncompressed
  std::vector<IndexedChunk> chunks;

  uint64_t records() const;
  friend bool operator==(const RecordIndex&, const RecordIndex&) = default;
};

// Builds an index while records are written or scanned, in order. A compressed file is one chunk.
class RecordIndexBuilder {
 public:
  RecordIndexBuilder(FileFormat format, formats::Compression compression,
                     const formats::CsvOptions& csv = {});
  // Adds a record that starts at byte `offset` (uncompressed) and, in text, at `line`.
  void Add(uint64_t offset, uint64_t line = 0);
  RecordIndex Finish(uint64_t end, uint64_t file_size) &&;

 private:
  RecordIndex index_;
};

std::string SerializeRecordIndex(const RecordIndex& index);
// DATA_LOSS when the bytes are not an index of this version.
absl::StatusOr<RecordIndex> ParseRecordIndex(std::string_view bytes);

// What of `csv`, besides the delimiter, determines where rows and chunks begin, as a byte of an
// index: 0 for a header, quotes '"' and no trimming.
uint8_t RowRules(const formats::CsvOptions& csv);

// What JSON lines are as rows: a line is one, and there is no header.
formats::CsvOptions JsonRows();

// "a/.part-0.tfrecord.index" for "a/part-0.tfrecord".
std::string RecordIndexPath(const std::string& path);

// Reads the whole file. Records with a wrong CRC of their data are counted and left to the reader;
// damage that cannot be skipped is an error, as is a CSV file without the header that `rules` say
// it has.
absl::StatusOr<RecordIndex> ScanRecords(io::FileSystem& files, const std::string& path,
                                        const FileRules& rules);

// The index beside the file if it is valid, was made by the same rules, has the same file size, and
// is not older than the file; otherwise a scan. The result of a scan is written beside the file, so
// that the next opener need not scan, if the file is larger than one chunk (a smaller one is read
// as quickly as its index) and did not change meanwhile. It is no error if the result cannot be
// written, for example where only reading is allowed. Several processes may do this at once: each
// writes the whole index under a temporary name and renames it.
absl::StatusOr<RecordIndex> LoadOrScanRecords(io::FileSystem& files, const std::string& path,
                                              const FileRules& rules);

// Writes the index of the file `path` to RecordIndexPath(path), as a whole and durably
// (io::WriteFileAtomically, whose errors it has). `index` must describe the file as it is now;
// that is not checked. Several processes may do this at once: the last one's index stays.
absl::Status WriteRecordIndex(io::FileSystem& files, const std::string& path,
                              const RecordIndex& index);

}  // namespace muster::data
