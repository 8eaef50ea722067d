#include "muster/formats/sniff.h"

#include <algorithm>
#include <array>
#include <utility>

#include "muster/formats/foreign_formats.h"
#include "muster/formats/tfrecord.h"

namespace muster::formats {
namespace {

constexpr size_t kFirstBytes = 512;  // enough for a magic number
constexpr size_t kMaxRows = 100;     // the delimiter is guessed from these

// In the order of preference among those that explain the text equally well. The first is Hive's.
constexpr std::array<char, 5> kDelimiters = {'\x01', '\t', ';', ',', '|'};

// Text has few control characters, NUL among them, besides white space and Hive's delimiter.
bool IsText(std::string_view bytes) {
  constexpr size_t kOneOf = 100;
  size_t control = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    const bool is_space = byte >= '\t' && byte <= '\r';
    if ((byte < 0x20 && !is_space && byte != 1) || byte == 0x7f) ++control;
  }
  return control * kOneOf <= bytes.size();
}

std::string_view SkipMark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::string_view SkipSpace(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? "" : text.substr(first);
}

// Returns the rows of a text: at most kMaxRows, and only complete ones.
std::vector<std::string_view> CutRows(std::string_view text, bool whole, CsvOptions options) {
  std::vector<std::string_view> rows;
  CsvRowScanner scanner(options);
  while (!text.empty() && rows.size() < kMaxRows) {
    size_t size = scanner.Find(text);
    if (size == CsvRowScanner::kMore) {
      if (!whole && !rows.empty()) break;
      size = text.size();
    }
    const std::string_view row = StripLineEnd(text.substr(0, size));
    if (!row.empty()) rows.push_back(row);
    text.remove_prefix(size);
  }
  return rows;
}

// How well a delimiter explains the text: the share of the rows that have as many cells as the
// first one, times the number of cells beyond one.
struct Guess {
  double score = 0;
  size_t cells = 1;
};

Guess Judge(std::string_view text, bool whole, CsvOptions options, size_t wanted) {
  std::vector<std::string_view> cells;
  std::string scratch;
  size_t first = 0, rows = 0, alike = 0;
  for (const std::string_view row : CutRows(text, whole, options)) {
    const bool split = SplitCsvRow(row, options, &cells, &scratch).ok();
    if (rows++ == 0) first = cells.size();
    if (split && cells.size() == first) ++alike;
  }
  if (rows == 0 || first < 2) return {.cells = std::max<size_t>(first, 1)};
  const double share = static_cast<double>(alike) / static_cast<double>(rows);
  double score = share * static_cast<double>(first - 1);
  constexpr double kAsNamed = 1e6;  // more than any wrong number of cells
  if (wanted > 1 && first == wanted) score += kAsNamed * share;
  return {.score = score, .cells = first};
}

bool IsTextName(std::string_view path) { return GetNamedFormat(path) == FileFormat::kCsv; }

absl::Status NoJsonLines(std::string_view path, std::string_view what, std::string_view way) {
  return absl::InvalidArgumentError(
      StrCat(path, ": this is ", what,
             ", which muster does not read; it reads JSON lines, with one object on each ",
             "line: jq -c ", way, " ", path, " > ", path, "l"));
}

// Whether a text is JSON lines: lines of objects. An error for JSON of another form.
absl::StatusOr<bool> IsJsonLines(std::string_view text, std::string_view path) {
  text = SkipSpace(text);
  if (text.starts_with('[')) {
    const std::string_view inside = SkipSpace(text.substr(1));
    if (!inside.starts_with('{') && !inside.starts_with('[')) return false;
    return NoJsonLines(path, "an array in JSON", "'.[]'");
  }
  if (!text.starts_with('{')) return false;
  const std::string_view line = StripLineEnd(text.substr(0, text.find('\n')));
  const std::string_view inside = SkipSpace(line.substr(1));
  if (inside.empty() && text.size() > line.size()) {
    return NoJsonLines(path, "JSON with objects over several lines", ".");
  }
  return inside.starts_with('"') || inside.starts_with('}');
}

// Whether lines end with CR alone. The last one may end with LF, which some programs add.
bool HasOldLineEnds(std::string_view text, bool whole) {
  const size_t feed = text.find('\n');
  const bool ends_with_feed = whole && feed != text.npos && feed + 1 == text.size();
  if (ends_with_feed) text.remove_suffix(1);
  if (text.find('\n') != text.npos) return false;
  const size_t first = text.find('\r');
  if (first == text.npos || first + 1 == text.size()) return false;
  return !ends_with_feed || text.find('\r', first + 1) != text.npos;
}

absl::StatusOr<Sniffed> SniffText(std::string_view text, bool whole, std::string_view path,
                                  const DataFormat& format) {
  Sniffed sniffed;
  if (!IsTextName(path) && format.type != FileFormat::kCsv) {
    MUSTER_ASSIGN_OR_RETURN(const bool json, IsJsonLines(text, path));
    if (json) {
      sniffed.content = Sniffed::Content::kJsonLines;
      return sniffed;
    }
  }
  if (HasOldLineEnds(text, whole)) {
    return absl::InvalidArgumentError(StrCat(
        path, ": its lines end with CR alone, as those of an old Macintosh, and are read only ",
        "with LF or CRLF; convert it: tr '\\r' '\\n' < ", path, " > new.csv"));
  }
  const Delimiter delimiter = GuessDelimiter(text, whole, format);
  sniffed.content = Sniffed::Content::kText;
  sniffed.delimiter = delimiter.byte;
  sniffed.cells = delimiter.cells;
  return sniffed;
}

// Reads up to `size` bytes from the beginning of the stream.
absl::StatusOr<std::string> ReadUpTo(ByteStream& stream, size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, stream.Read(size - done, bytes.data() + done));
    if (count == 0) break;
    done += count;
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

std::optional<FileFormat> GetNamedFormat(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst", ".zlib"}) {
    if (!path.ends_with(ending)) continue;
    path.remove_suffix(ending.size());
    break;
  }
  const auto ends = [path](std::string_view ending) { return path.ends_with(ending); };
  if (ends(".csv") || ends(".tsv")) return FileFormat::kCsv;
  if (ends(".jsonl") || ends(".json")) return FileFormat::kJsonLines;
  if (ends(".tfrecord") || ends(".tfrecords")) return FileFormat::kTfRecord;
  return std::nullopt;
}

Delimiter GuessDelimiter(std::string_view text, bool whole, const DataFormat& format) {
  text = SkipMark(text);
  CsvOptions options = format.csv();
  Delimiter best;
  double best_score = 0;
  for (const char byte : kDelimiters) {
    if (format.delimiter && *format.delimiter != byte) continue;
    options.delimiter = byte;
    const Guess guess = Judge(text, whole, options, format.columns.size());
    if (guess.score <= best_score) continue;
    best = {.byte = byte, .cells = guess.cells};
    best_score = guess.score;
  }
  if (!format.delimiter) return best;
  options.delimiter = *format.delimiter;
  return {.byte = *format.delimiter, .cells = Judge(text, whole, options, 0).cells};
}

absl::StatusOr<Sniffed> SniffBytes(std::string_view bytes, bool whole, std::string_view path,
                                   const DataFormat& format) {
  if (bytes.empty()) return Sniffed();
  if (BeginsWithRecord(bytes)) return Sniffed{.content = Sniffed::Content::kTfRecord};
  const bool is_text = IsText(bytes);
  if (const ForeignFormat* const foreign = FindForeignFormat(bytes, is_text)) {
    return absl::InvalidArgumentError(StrCat(path, ": ", DescribeForeign(*foreign, path)));
  }
  if (!is_text && format.type != FileFormat::kCsv && !IsTextName(path)) {
    return Sniffed{.content = Sniffed::Content::kUnknown};
  }
  return SniffText(SkipMark(bytes), whole, path, format);
}

absl::StatusOr<Sniffed> SniffFile(const std::shared_ptr<const io::RandomAccessFile>& file,
                                  const DataFormat& format) {
  const std::string path = file->path();
  MUSTER_ASSIGN_OR_RETURN(Compression compression, DetectCompression(*file));
  std::unique_ptr<ByteStream> stream = NewByteStream(file, compression);
  absl::StatusOr<std::string> first = ReadUpTo(*stream, kFirstBytes);
  // Two bytes of a text may look like the header of ZLIB; of ZLIB streams only TFRecord is read.
  const bool is_stream = first.ok() && (first->empty() || BeginsWithRecord(*first));
  if (compression == Compression::kZlib && !is_stream) {
    compression = Compression::kNone;
    stream = NewByteStream(file, compression);
    first = ReadUpTo(*stream, kFirstBytes);
  }
  if (!first.ok()) return Annotate(first.status(), path);
  std::string bytes = *std::move(first);
  bool whole = bytes.size() < kFirstBytes;
  if (!whole && !BeginsWithRecord(bytes)) {
    absl::StatusOr<std::string> more = ReadUpTo(*stream, kSniffedBytes - kFirstBytes);
    // The first part may be undamaged; the reader reports where the damage is.
    if (more.ok()) {
      whole = more->size() < kSniffedBytes - kFirstBytes;
      bytes += *more;
    }
  }
  MUSTER_ASSIGN_OR_RETURN(Sniffed sniffed, SniffBytes(bytes, whole, path, format));
  sniffed.compression = compression;
  return sniffed;
}

}  // namespace muster::formats
