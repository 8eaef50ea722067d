#include "muster/train/input/compiled/compiled_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/base/strings.h"
#include "muster/data/file_source.h"
#include "muster/formats/json_tree.h"

namespace muster::train {
namespace {

using data::Chunk;
using data::ChunkInfo;
using formats::Json;

constexpr std::string_view kMagic = "mustercf";
constexpr uint32_t kVersion = 1;
// The last bytes of a file: the size and the CRC of the JSON before them, the version, the magic.
constexpr size_t kTailBytes = sizeof(uint64_t) + 2 * sizeof(uint32_t) + kMagic.size();
constexpr size_t kDepth = 8;  // of the JSON

template <typename Number>
void AppendNumber(Number value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

Json PrintChunk(const ChunkInfo& chunk, const CompiledBlock& block) {
  return {chunk.file,         chunk.begin,        chunk.end,       chunk.records,
          chunk.first_record, chunk.first_number, chunk.line,      chunk.compressed,
          block.begin,        block.size,         block.row_bytes, block.crc};
}

// Reads what PrintChunk() has printed; false for anything else.
bool ReadChunk(const Json& json, ChunkInfo* chunk, CompiledBlock* block) {
  constexpr size_t kParts = 12, kCompressed = 7;
  if (!json.is_array() || json.size() != kParts) return false;
  for (size_t i = 0; i < kParts; ++i) {
    if (i == kCompressed ? !json[i].is_boolean() : !json[i].is_number_unsigned()) return false;
  }
  const auto number = [&](size_t i) { return json[i].get<uint64_t>(); };
  if (number(0) > std::numeric_limits<int>::max() ||
      number(kParts - 1) > std::numeric_limits<uint32_t>::max()) {
    return false;
  }
  *chunk = {.file = static_cast<int>(number(0)),
            .begin = number(1),
            .end = number(2),
            .records = number(3),
            .first_record = number(4),
            .first_number = number(5),
            .line = number(6),
            .compressed = json[kCompressed].get<bool>()};
  *block = {.begin = number(8),
            .size = number(9),
            .row_bytes = number(10),
            .crc = static_cast<uint32_t>(number(11))};
  return true;
}

// Whether the block lies in a file with so many bytes of blocks and can hold the chunk's rows.
bool Fits(const CompiledBlock& block, uint64_t records, uint64_t bytes) {
  if (block.begin > bytes || block.size > bytes - block.begin) return false;
  if (block.row_bytes == 0) return records <= block.size / sizeof(uint32_t);
  return records <= block.size / block.row_bytes && block.size == records * block.row_bytes;
}

// Returns the ends of a block's rows; empty if they are not in order or leave bytes over.
std::vector<uint32_t> ReadEnds(std::string_view block, size_t records) {
  const size_t rows = block.size() - records * sizeof(uint32_t);
  std::vector<uint32_t> ends(records);
  std::memcpy(ends.data(), block.data() + rows, records * sizeof(uint32_t));
  if (!std::ranges::is_sorted(ends) || (ends.empty() ? 0 : ends.back()) != rows) return {};
  return ends;
}

// Reads the JSON of a file whose blocks end at byte `blocks_end`.
absl::StatusOr<CompiledInfo> ReadInfo(std::string_view text, uint64_t blocks_end) {
  const auto json = formats::ParseJsonTree(text, kDepth);
  if (!json || !json->is_object()) return absl::DataLossError("its end is no JSON");
  formats::JsonFields fields(*json, "its end");
  CompiledInfo info = {.key = fields.Text("key"), .files = fields.Texts("files")};
  const auto fingerprint = json->find("fingerprint");
  if (fingerprint == json->end() || !fingerprint->is_number_unsigned()) {
    fields.Fail("\"fingerprint\" must be a number");
  } else {
    info.fingerprint = fingerprint->get<uint64_t>();
  }
  info.warnings = fields.Texts("warnings");
  auto layout = ReadLayout(fields.Object("layout"), "its layout");
  fields.Update(layout.status());
  for (const Json& each : fields.List("chunks")) {
    ChunkInfo chunk;
    CompiledBlock block;
    if (!ReadChunk(each, &chunk, &block) || std::cmp_greater_equal(chunk.file, info.files.size()) ||
        !Fits(block, chunk.records, blocks_end)) {
      fields.Fail("\"chunks\" must be blocks of the file");
      break;
    }
    info.chunks.push_back(chunk);
    info.blocks.push_back(block);
  }
  if (!fields.status().ok()) return absl::DataLossError(fields.status().message());
  info.layout = *std::move(layout);
  return info;
}

// Its records are the bytes of the block.
class CompiledDecoder final : public formats::RowDecoder {
 public:
  absl::Status Decode(std::string_view record, formats::Columns* columns) override {
    columns->mutable_column(0).strings.push_back(record);
    columns->AddRow();
    return absl::OkStatus();
  }
};

class CompiledSource final : public data::RecordSource {
 public:
  CompiledSource(std::unique_ptr<const io::RandomAccessFile> file, const CompiledFile& compiled)
      : file_(std::move(file)),
        path_(compiled.path()),
        names_(compiled.info().files),
        chunks_(compiled.info().chunks),
        blocks_(compiled.info().blocks),
        fingerprint_(compiled.info().fingerprint) {}

  const std::vector<std::string>& files() const override { return names_; }
  const std::vector<ChunkInfo>& chunks() const override { return chunks_; }

  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t number) const override {
    const ChunkInfo& info = chunks_[number];
    const CompiledBlock& block = blocks_[number];
    std::shared_ptr<Chunk> chunk = pool_->Get();
    const auto size = static_cast<size_t>(block.size);
    chunk->bytes.resize(size);
    MUSTER_RETURN_IF_ERROR(ReadBlock(block, chunk->bytes.data()));
    const std::string_view bytes(chunk->bytes.data(), size);
    if (Crc32c(bytes) != block.crc) {
      return CompiledDamage(StrCat(path_, ": the block at byte ", block.begin, " is damaged"));
    }
    chunk->file = names_[static_cast<size_t>(info.file)];
    chunk->place = data::RecordPlace::kRow;
    chunk->first_number = info.first_number;
    const auto records = static_cast<size_t>(info.records);
    chunk->records.resize(records);
    chunk->offsets.resize(records);
    for (size_t i = 0; i < records; ++i) chunk->offsets[i] = info.first_number + i + 1;
    if (const auto each = static_cast<size_t>(block.row_bytes); each > 0) {
      for (size_t i = 0; i < records; ++i) chunk->records[i] = {bytes.data() + i * each, each};
      return chunk;
    }
    const std::vector<uint32_t> ends = ReadEnds(bytes, records);
    if (ends.size() != records) {
      return CompiledDamage(StrCat(path_, ": the block at byte ", block.begin, " has no rows"));
    }
    size_t begin = 0;
    for (size_t i = 0; i < records; ++i) {
      chunk->records[i] = {bytes.data() + begin, ends[i] - begin};
      begin = ends[i];
    }
    return chunk;
  }

  absl::StatusOr<std::unique_ptr<data::ChunkStream>> Stream(size_t chunk) const override {
    return data::NewOnePieceStream(*this, chunk);
  }
  absl::Status CountBad(size_t /*chunk*/, const Chunk& /*piece*/) const override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& /*schema*/) const override {
    return std::make_unique<CompiledDecoder>();
  }
  uint64_t bad_records() const override { return 0; }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  absl::Status ReadBlock(const CompiledBlock& block, char* bytes) const {
    const auto read = file_->Read(block.begin, static_cast<size_t>(block.size), bytes);
    if (!read.ok()) return CompiledDamage(ToStd(read.status().message()));
    if (*read == block.size) return absl::OkStatus();
    return CompiledDamage(StrCat(path_, ": its end was cut off"));
  }

  const std::unique_ptr<const io::RandomAccessFile> file_;
  const std::shared_ptr<data::ChunkPool> pool_ = std::make_shared<data::ChunkPool>();
  const std::string path_;
  const std::vector<std::string> names_;
  const std::vector<ChunkInfo> chunks_;
  const std::vector<CompiledBlock> blocks_;
  const uint64_t fingerprint_;
};

}  // namespace

std::string PrintCompiledEnd(const CompiledInfo& info) {
  Json chunks = Json::array();
  for (size_t i = 0; i < info.chunks.size(); ++i) {
    chunks.push_back(PrintChunk(info.chunks[i], info.blocks[i]));
  }
  std::string end = formats::PrintJson({{"key", info.key},
                                        {"files", info.files},
                                        {"fingerprint", info.fingerprint},
                                        {"layout", PrintLayout(info.layout)},
                                        {"warnings", info.warnings},
                                        {"chunks", std::move(chunks)}});
  const uint64_t size = end.size();
  const uint32_t crc = Crc32c(end);
  AppendNumber(size, &end);
  AppendNumber(crc, &end);
  AppendNumber(kVersion, &end);
  end += kMagic;
  return end;
}

absl::StatusOr<CompiledInfo> ReadCompiledEnd(uint64_t file_size, const ReadFile& read) {
  if (file_size < kTailBytes) return absl::DataLossError("its end is missing");
  const absl::StatusOr<std::string> tail = read(file_size - kTailBytes, kTailBytes);
  MUSTER_RETURN_IF_ERROR(tail.status());
  ByteReader reader(*tail);
  uint64_t size = 0;
  uint32_t crc = 0, version = 0;
  if (!tail->ends_with(kMagic) || !reader.Read(&size) || !reader.Read(&crc) ||
      !reader.Read(&version)) {
    return absl::DataLossError("its end is missing");
  }
  if (version != kVersion) {
    return absl::FailedPreconditionError(StrCat("it has format version ", version));
  }
  if (size > file_size - kTailBytes) return absl::DataLossError("its end is damaged");
  const uint64_t blocks_end = file_size - kTailBytes - size;
  MUSTER_ASSIGN_OR_RETURN(const std::string text, read(blocks_end, static_cast<size_t>(size)));
  if (Crc32c(text) != crc) return absl::DataLossError("its end is damaged");
  return ReadInfo(text, blocks_end);
}

CompiledFileWriter::CompiledFileWriter(io::FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), temporary_(io::NewTemporaryPath(path_)) {}

absl::StatusOr<std::unique_ptr<CompiledFileWriter>> CompiledFileWriter::Create(
    io::FileSystem& files, const std::string& path) {
  std::unique_ptr<CompiledFileWriter> writer(new CompiledFileWriter(files, path));
  MUSTER_ASSIGN_OR_RETURN(writer->file_, files.OpenForWrite(writer->temporary_));
  MUSTER_RETURN_IF_ERROR(writer->Append(kMagic));
  return writer;
}

CompiledFileWriter::~CompiledFileWriter() {
  if (file_ == nullptr) return;
  file_.reset();
  (void)files_.Remove(temporary_);  // what stays is removed by a later opener of the folder
}

absl::Status CompiledFileWriter::Append(std::string_view bytes) {
  MUSTER_RETURN_IF_ERROR(file_->Append(bytes));
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::StatusOr<CompiledBlock> CompiledFileWriter::AddBlock(std::string_view bytes,
                                                           size_t row_bytes) {
  CompiledBlock block = {
      .begin = size_, .size = bytes.size(), .row_bytes = row_bytes, .crc = Crc32c(bytes)};
  MUSTER_RETURN_IF_ERROR(Append(bytes));
  return block;
}

absl::StatusOr<CompiledBlock> CompiledFileWriter::AddBlock(std::string_view bytes,
                                                           const std::vector<uint32_t>& ends) {
  const std::string_view table(reinterpret_cast<const char*>(ends.data()),
                               ends.size() * sizeof(uint32_t));
  CompiledBlock block = {.begin = size_,
                         .size = bytes.size() + table.size(),
                         .crc = ExtendCrc32c(Crc32c(bytes), table)};
  MUSTER_RETURN_IF_ERROR(Append(bytes));
  MUSTER_RETURN_IF_ERROR(Append(table));
  return block;
}

absl::Status CompiledFileWriter::Finish(const CompiledInfo& info) {
  MUSTER_RETURN_IF_ERROR(Append(PrintCompiledEnd(info)));
  MUSTER_RETURN_IF_ERROR(file_->Close());
  MUSTER_RETURN_IF_ERROR(files_.Rename(temporary_, path_));
  file_.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const CompiledFile>> CompiledFile::Open(io::FileSystem& files,
                                                                       const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo about, files.Stat(path));
  MUSTER_ASSIGN_OR_RETURN(auto file, files.OpenForRead(path));
  auto info =
      ReadCompiledEnd(about.size, [&](uint64_t begin, size_t size) -> absl::StatusOr<std::string> {
        std::string bytes(size, '\0');
        MUSTER_ASSIGN_OR_RETURN(const size_t read, file->Read(begin, size, bytes.data()));
        if (read < size) return absl::DataLossError("its end was cut off");
        return bytes;
      });
  if (!info.ok()) return Annotate(info.status(), path);
  std::shared_ptr<CompiledFile> compiled(new CompiledFile(path, *std::move(info)));
  compiled->source_ = std::make_shared<CompiledSource>(std::move(file), *compiled);
  return compiled;
}

}  // namespace muster::train
