#include "muster/data/record_index.h"

#include <optional>
#include <utility>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/formats/tfrecord.h"

namespace muster::data {
namespace {

using formats::Compression;

constexpr std::string_view kIndexMagic = "MUSTRIDX";
constexpr uint32_t kIndexVersion = 1;
constexpr size_t kIndexHeadBytes = 40;
constexpr size_t kIndexChunkBytes = 24;
constexpr size_t kIndexTailBytes = 4;
constexpr uint8_t kMaxFormat = 2, kMaxCompression = 3, kMaxRowRules = 2 << 2 | 3;
constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;

template <typename T>
void AppendLittle(T value, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes->push_back(static_cast<char>(value >> (8 * i)));
}

absl::Status BrokenIndex(std::string_view what) {
  return absl::DataLossError(StrCat("record index: ", what));
}

absl::Status CheckIndex(const RecordIndex& index) {
  uint64_t begin = 0;
  for (const IndexedChunk& chunk : index.chunks) {
    if (chunk.begin < begin || chunk.begin >= index.end)
      return BrokenIndex("its chunks are out of order");
    if (chunk.records == 0 || chunk.records > index.end)
      return BrokenIndex("a chunk has a wrong count");
    begin = chunk.begin + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordIndex> ScanTfRecords(std::shared_ptr<const io::RandomAccessFile> file,
                                          uint64_t file_size, Compression compression) {
  MUSTER_ASSIGN_OR_RETURN(auto reader, formats::TfRecordReader::Open(std::move(file), compression));
  RecordIndexBuilder builder(FileFormat::kTfRecord, compression);
  while (true) {
    const uint64_t offset = reader->offset();
    std::string_view record;
    const absl::StatusOr<bool> more = reader->Next(&record);
    if (!more.ok() && !reader->SkippableError()) return more.status();
    if (more.ok() && !*more) return std::move(builder).Finish(offset, file_size);
    builder.Add(offset);
  }
}

absl::StatusOr<RecordIndex> ScanText(std::shared_ptr<const io::RandomAccessFile> file,
                                     uint64_t file_size, const FileRules& rules) {
  MUSTER_ASSIGN_OR_RETURN(auto reader, formats::CsvRowReader::Open(std::move(file), rules.csv));
  RecordIndexBuilder builder(rules.format, rules.compression, rules.csv);
  while (true) {
    std::string_view row;
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) return std::move(builder).Finish(reader->offset(), file_size);
    builder.Add(reader->row_offset(), reader->line());
  }
}

// Returns nullopt if there is no index that fits the file.
std::optional<RecordIndex> LoadRecordIndex(io::FileSystem& files, const std::string& path,
                                           const io::FileInfo& data, const FileRules& rules) {
  const std::string index_path = RecordIndexPath(path);
  const absl::StatusOr<io::FileInfo> info = files.Stat(index_path);
  if (!info.ok() || info->modified_ns < data.modified_ns) return std::nullopt;
  const absl::StatusOr<std::string> bytes = io::ReadFile(files, index_path, kMaxIndexBytes);
  if (!bytes.ok()) return std::nullopt;
  absl::StatusOr<RecordIndex> index = ParseRecordIndex(*bytes);
  if (!index.ok() || index->file_size != data.size) return std::nullopt;
  if (index->format != rules.format) return std::nullopt;
  const bool is_csv = index->format == FileFormat::kCsv;
  if (is_csv && index->delimiter != rules.csv.delimiter) return std::nullopt;
  if (is_csv && index->rows != RowRules(rules.csv)) return std::nullopt;
  return *std::move(index);
}

}  // namespace

uint64_t RecordIndex::records() const {
  uint64_t sum = 0;
  for (const IndexedChunk& chunk : chunks) sum += chunk.records;
  return sum;
}

RecordIndexBuilder::RecordIndexBuilder(FileFormat format, Compression compression,
                                       const formats::CsvOptions& csv) {
  index_.format = format;
  index_.compression = compression;
  index_.delimiter = csv.delimiter;
  if (format == FileFormat::kCsv) index_.rows = RowRules(csv);
}

void RecordIndexBuilder::Add(uint64_t offset, uint64_t line) {
  const bool whole = index_.compression != Compression::kNone;
  if (index_.chunks.empty() || (!whole && offset - index_.chunks.back().begin >= kChunkBytes)) {
    index_.chunks.push_back({.begin = offset, .records = 0, .line = line});
  }
  ++index_.chunks.back().records;
}

RecordIndex RecordIndexBuilder::Finish(uint64_t end, uint64_t file_size) && {
  index_.end = end;
  index_.file_size = file_size;
  return std::move(index_);
}

std::string SerializeRecordIndex(const RecordIndex& index) {
  std::string bytes(kIndexMagic);
  AppendLittle<uint32_t>(kIndexVersion, &bytes);
  bytes.push_back(static_cast<char>(index.format));
  bytes.push_back(static_cast<char>(index.compression));
  bytes.push_back(index.delimiter);
  bytes.push_back(static_cast<char>(index.rows));
  AppendLittle<uint64_t>(index.file_size, &bytes);
  AppendLittle<uint64_t>(index.end, &bytes);
  AppendLittle<uint64_t>(index.chunks.size(), &bytes);
  for (const IndexedChunk& chunk : index.chunks) {
    AppendLittle<uint64_t>(chunk.begin, &bytes);
    AppendLittle<uint64_t>(chunk.records, &bytes);
    AppendLittle<uint64_t>(chunk.line, &bytes);
  }
  AppendLittle<uint32_t>(MaskedCrc32c(bytes), &bytes);
  return bytes;
}

absl::StatusOr<RecordIndex> ParseRecordIndex(std::string_view bytes) {
  if (bytes.size() < kIndexHeadBytes + kIndexTailBytes) return BrokenIndex("cut short");
  if (!bytes.starts_with(kIndexMagic)) return BrokenIndex("it is not an index");
  uint32_t crc = 0, version = 0;
  ByteReader(bytes.substr(bytes.size() - kIndexTailBytes)).Read(&crc);
  bytes.remove_suffix(kIndexTailBytes);
  if (crc != MaskedCrc32c(bytes)) return BrokenIndex("wrong checksum");
  ByteReader reader(bytes.substr(kIndexMagic.size()));
  reader.Read(&version);
  if (version != kIndexVersion) return BrokenIndex("another version");
  RecordIndex index;
  uint8_t format = 0, compression = 0;
  reader.Read(&format);
  reader.Read(&compression);
  if (format > kMaxFormat || compression > kMaxCompression) {
    return BrokenIndex("it has an unknown format");
  }
  index.format = static_cast<FileFormat>(format);
  index.compression = static_cast<Compression>(compression);
  reader.Read(&index.delimiter);
  reader.Read(&index.rows);
  if (index.rows > kMaxRowRules) return BrokenIndex("it has unknown rules of rows");
  reader.Read(&index.file_size);
  reader.Read(&index.end);
  uint64_t count = 0;
  reader.Read(&count);
  if (!reader.ok() || reader.left() % kIndexChunkBytes != 0 ||
      count != reader.left() / kIndexChunkBytes) {
    return BrokenIndex("it has a wrong length");
  }
  index.chunks.resize(count);
  for (IndexedChunk& chunk : index.chunks) {
    reader.Read(&chunk.begin);
    reader.Read(&chunk.records);
    reader.Read(&chunk.line);
  }
  MUSTER_RETURN_IF_ERROR(CheckIndex(index));
  return index;
}

uint8_t RowRules(const formats::CsvOptions& csv) {
  const int quote = csv.quote == '\0' ? 1 : csv.quote == '\'' ? 2 : 0;
  return static_cast<uint8_t>((csv.header ? 0 : 1) | (csv.trim ? 2 : 0) | quote << 2);
}

formats::CsvOptions JsonRows() { return {.quote = '\0', .header = false}; }

std::string RecordIndexPath(const std::string& path) {
  const std::string name = StrCat(".", io::Basename(path), ".index");
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

absl::StatusOr<RecordIndex> ScanRecords(io::FileSystem& files, const std::string& path,
                                        const FileRules& rules) {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(path));
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  return rules.format == FileFormat::kTfRecord
             ? ScanTfRecords(std::move(file), info.size, rules.compression)
             : ScanText(std::move(file), info.size, rules);
}

absl::StatusOr<RecordIndex> LoadOrScanRecords(io::FileSystem& files, const std::string& path,
                                              const FileRules& rules) {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(path));
  if (auto index = LoadRecordIndex(files, path, info, rules)) return *std::move(index);
  MUSTER_ASSIGN_OR_RETURN(RecordIndex index, ScanRecords(files, path, rules));
  // A stale index of a TFRecord file would be noticed when its records are read; that of a text
  // file would not.
  if (info.size <= kChunkBytes || index.format != FileFormat::kTfRecord) return index;
  const absl::StatusOr<io::FileInfo> now = files.Stat(path);
  const bool unchanged = now.ok() && now->size == info.size &&
                         now->modified_ns == info.modified_ns && now->identity == info.identity;
  if (unchanged) WriteRecordIndex(files, path, index).IgnoreError();
  return index;
}

absl::Status WriteRecordIndex(io::FileSystem& files, const std::string& path,
                              const RecordIndex& index) {
  return io::WriteFileAtomically(files, RecordIndexPath(path), SerializeRecordIndex(index));
}

}  // namespace muster::data
