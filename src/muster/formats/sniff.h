// Sniffing: recognises a file's format by its first bytes. TFRecord is recognised by the CRC of its
// first length, text by having hardly any control characters, JSON lines by their brace; the
// delimiter of CSV is guessed from the first rows. Formats that cannot be read are recognised by
// their magic numbers, and an error names the format and a command that converts it.
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

// The number of (decompressed) bytes that are examined.
constexpr size_t kSniffedBytes = size_t{64} << 10;

// Returns what the end of a name says, ignoring an ending of compression (.gz, .zst, .zlib): .csv,
// .tsv; .jsonl and .json (Spark's name for JSON lines); .tfrecord and .tfrecords.
std::optional<FileFormat> GetNamedFormat(std::string_view path);

struct Sniffed {
  enum class Content {
    kEmpty,      // no bytes
    kTfRecord,   // certain
    kJsonLines,  // each line is an object
    kText,       // any other text: CSV, with `delimiter`
    kUnknown,    // none of these
  };
  Content content = Content::kEmpty;
  Compression compression = Compression::kNone;
  char delimiter = ',';  // of text
  size_t cells = 0;      // of text: the number in its first row
};

// Recognises `bytes`, the first bytes of a file, decompressed; `whole` says that there are no more.
// `format` may contain the delimiter and the quote of cells; `path` is the file's name in messages,
// and if it ends as a text file's, the bytes are not taken for JSON. INVALID_ARGUMENT for a format
// that is recognised but cannot be read.
absl::StatusOr<Sniffed> SniffBytes(std::string_view bytes, bool whole, std::string_view path,
                                   const DataFormat& format = {});

// As SniffBytes, for the first kSniffedBytes of a file that may be compressed. Reads at most that
// many bytes of the file, and 512 if it is plain TFRecord. Errors are also those of the file and of
// broken compression, which name the file.
absl::StatusOr<Sniffed> SniffFile(const std::shared_ptr<const io::RandomAccessFile>& file,
                                  const DataFormat& format = {});

// Returns the byte among `,`, tab, `;`, `|` and 1 (Hive's) that gives rows with the same number of
// cells, and the most of them; ',' if there is none. `text` is the beginning of a file; its last
// row counts if it is `whole`. If `format.columns` is given, its length is the number of cells to
// look for.
struct Delimiter {
  char byte = ',';
  size_t cells = 1;  // in the first row
};
Delimiter GuessDelimiter(std::string_view text, bool whole, const DataFormat& format = {});

}  // namespace muster::formats
