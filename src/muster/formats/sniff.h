// Sniffing: what a file is, by its first bytes. TFRecord is known by the CRC of its first length,
// text by having hardly any control characters, JSON lines by their brace; what separates the cells
// of CSV is guessed from its first rows. Formats that are not read are known by their magic
// numbers, and an error names them and a way to make what is read of them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/compression.h"
#include "muster/formats/csv.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"

namespace muster::formats {

// So many (decompressed) bytes are looked at.
constexpr size_t kSniffedBytes = size_t{64} << 10;

// What the end of a name says, without an ending of compression (.gz, .zst, .zlib): .csv, .tsv;
// .jsonl and .json (Spark's name for JSON lines); .tfrecord and .tfrecords.
std::optional<FileFormat> GetNamedFormat(std::string_view path);

struct Sniffed {
  enum class Content {
    kEmpty,      // no bytes
    kTfRecord,   // certain
    kJsonLines,  // each line an object
    kText,       // any other text: CSV, with `delimiter`
    kUnknown,    // none of these
  };
  Content content = Content::kEmpty;
  Compression compression = Compression::kNone;
  char delimiter = ',';  // of text
  size_t cells = 0;      // of text: in its first row
};

// What `bytes`, the first of a file, decompressed, are; `whole` says that there are no more.
// `format` may say what separates and quotes cells; `path` is the file in messages, and an ending
// of text in it says that the bytes are no JSON. INVALID_ARGUMENT for a format that is known and
// not read.
absl::StatusOr<Sniffed> SniffBytes(std::string_view bytes, bool whole, std::string_view path,
                                   const DataFormat& format = {});

// As SniffBytes, for the first kSniffedBytes of a file that may be compressed; it reads at most as
// many bytes of the file, and 512 if it is plain TFRecord. Errors are also those of the file and of
// broken compression, which name it.
absl::StatusOr<Sniffed> SniffFile(const std::shared_ptr<const io::RandomAccessFile>& file,
                                  const DataFormat& format = {});

// The byte of `,`, tab, `;`, `|` and 1 (Hive's) that gives rows with the same number of cells, and
// most of them; ',' if there is none. `text` is the beginning of a file; its last row counts if it
// is `whole`. A number of `format.columns` is a number of cells to look for.
struct Delimiter {
  char byte = ',';
  size_t cells = 1;  // of the first row
};
Delimiter GuessDelimiter(std::string_view text, bool whole, const DataFormat& format = {});

}  // namespace muster::formats
