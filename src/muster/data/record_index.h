// RecordIndex: where one file can be cut between records, and how many records it has, so that the
// file can be read in chunks in any order. It is made while the file is written (muster records),
// or by one scan, and stored beside the file under a hidden name, so that programs that read all
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
  formats::CsvOptions csv = {};  // for text; JSON lines are rows without quotes or header
};

struct IndexedChunk {
  // byte in the (uncompressed) file; the chunk ends where the next one begins
  uint64_t begin = 0;
  uint64_t records = 0;  // records that begin in the chunk, including broken ones
  uint64_t line = 0;     // text: the line (1-based) at `begin`
  friend bool operator==(const IndexedChunk&, const IndexedChunk&) = default;
};

struct RecordIndex {
  FileFormat format = FileFormat::kTfRecord;
  formats::Compression compression = formats::Compression::kNone;
  char delimiter = ',';    // CSV
  uint8_t rows = 0;        // for text: how rows are cut (RowRules)
  uint64_t file_size = 0;  // bytes on disk
  uint64_t end = 0;        // uncompressed bytes
  std::vector<IndexedChunk> chunks;

  uint64_t records() const;
  friend bool operator==(const RecordIndex&, const RecordIndex&) = default;
};

// Makes an index while records are written or scanned, in order. A compressed file is one chunk.
class RecordIndexBuilder {
 public:
  RecordIndexBuilder(FileFormat format, formats::Compression compression,
                     const formats::CsvOptions& csv = {});
  // Adds a record that begins at byte `offset` (uncompressed) and, in text, at `line`.
  void Add(uint64_t offset, uint64_t line = 0);
  RecordIndex Finish(uint64_t end, uint64_t file_size) &&;

 private:
  RecordIndex index_;
};

std::string SerializeRecordIndex(const RecordIndex& index);
// DATA_LOSS if the bytes are not an index of this version.
absl::StatusOr<RecordIndex> ParseRecordIndex(std::string_view bytes);

// Returns, as a byte of an index, those settings of `csv` besides the delimiter that determine
// where rows and chunks begin. 0 means a header, quotes '"' and no trimming.
uint8_t RowRules(const formats::CsvOptions& csv);

// Returns the rules for JSON lines: each line is a row, and there is no header.
formats::CsvOptions JsonRows();

// Returns "a/.part-0.tfrecord.index" for "a/part-0.tfrecord".
std::string RecordIndexPath(const std::string& path);

// Reads the whole file and makes its index. Records whose data has a wrong CRC are counted and left
// to the reader. Damage that cannot be skipped is an error, and so is a CSV file without the header
// that `rules` requires.
absl::StatusOr<RecordIndex> ScanRecords(io::FileSystem& files, const std::string& path,
                                        const FileRules& rules);

// Returns the index beside the file if it is valid, was made with the same rules and file size, and
// is not older than the file; otherwise scans the file. The result of a scan is written beside the
// file, so that the next opener need not scan, if the file is larger than one chunk (a smaller one
// is read as quickly as its index) and did not change during the scan. If the result cannot be
// written, for example in a read-only folder, that is no error. Several processes may call this at
// once: each writes the whole index under a temporary name and renames it.
absl::StatusOr<RecordIndex> LoadOrScanRecords(io::FileSystem& files, const std::string& path,
                                              const FileRules& rules);

// Writes the index of the file `path` to RecordIndexPath(path), atomically and durably. `index`
// must describe the file as it is now, which is not checked. Errors are those of
// io::WriteFileAtomically. Several processes may call this at once: the last one's index stays.
absl::Status WriteRecordIndex(io::FileSystem& files, const std::string& path,
                              const RecordIndex& index);

}  // namespace muster::data
