#include "muster/data/file_source.h"

#include <algorithm>

namespace muster::data {
namespace {

constexpr size_t kMaxFreeChunks = 16;  // as many as a shuffle has open at the end of an epoch
constexpr size_t kMaxFreeChunkBytes = size_t{4} << 20;
constexpr size_t kMaxOpenFiles = 64;

uint64_t HashBytes(uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t HashNumber(uint64_t hash, uint64_t value) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3;
  return hash;
}

class OnePieceStream : public ChunkStream {
 public:
  OnePieceStream(const RecordSource& source, size_t chunk) : source_(source), chunk_(chunk) {}
  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    if (std::exchange(done_, true)) return nullptr;
    return source_.Read(chunk_);
  }

 private:
  const RecordSource& source_;
  const size_t chunk_;
  bool done_ = false;
};

}  // namespace

std::shared_ptr<Chunk> ChunkPool::Take() {
  std::unique_ptr<Chunk> chunk;
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      chunk = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!chunk) chunk = std::make_unique<Chunk>();
  return {chunk.release(),
          [pool = shared_from_this()](Chunk* used) { pool->Return(std::unique_ptr<Chunk>(used)); }};
}

void ChunkPool::Return(std::unique_ptr<Chunk> chunk) {
  if (chunk->bytes.capacity() > kMaxFreeChunkBytes) return;
  chunk->records.clear();
  chunk->offsets.clear();
  chunk->left_out.clear();
  MutexLock lock(&mutex_);
  if (free_.size() < kMaxFreeChunks) free_.push_back(std::move(chunk));
}

FileSource::FileSource(io::FileSystem& file_system, const std::vector<File>& files,
                       const SourceSpec& spec, uint64_t max_bad_records)
    : file_system_(file_system),
      spec_(spec),
      max_bad_records_(max_bad_records),
      pool_(std::make_shared<ChunkPool>()) {
  uint64_t total = 0;
  for (const File& file : files) total += file.index.records();
  const Shard& shard = spec.shard;
  const bool by_record = shard.by == ShardBy::kRecord;
  const auto multiple = static_cast<uint64_t>(shard.multiple);
  const uint64_t multiples = total / multiple + (total % multiple == 0 ? 0 : 1);
  const auto share = [&](int i) {
    const auto first = static_cast<unsigned __int128>(multiples) * i / shard.count;
    return static_cast<uint64_t>(std::min<unsigned __int128>(first * multiple, total));
  };
  const uint64_t begin = by_record ? share(shard.index) : 0;
  const uint64_t end = by_record ? share(shard.index + 1) : total;
  uint64_t first = 0;  // the file's first record among all
  for (const File& file : files) {
    const uint64_t last = first + file.index.records();
    const uint64_t from = std::clamp(begin, first, last), to = std::clamp(end, first, last);
    paths_.push_back(file.path);
    names_and_sizes_.emplace_back(io::Basename(file.path), file.index.file_size);
    AddChunks(static_cast<int>(paths_.size()) - 1, file.index, from - first, to - from,
              spec.first_number + from);
    first = last;
  }
  fingerprint_ = Fingerprint();
}

// The chunks that hold `take` records of a file behind the first `skip`, which are those from
// `number` on in the data.
void FileSource::AddChunks(int file, const RecordIndex& index, uint64_t skip, uint64_t take,
                           uint64_t number) {
  for (size_t i = 0; i < index.chunks.size() && take > 0; ++i) {
    const IndexedChunk& chunk = index.chunks[i];
    if (skip >= chunk.records) {
      skip -= chunk.records;
      continue;
    }
    ChunkInfo info;
    info.file = file;
    info.begin = chunk.begin;
    info.end = i + 1 < index.chunks.size() ? index.chunks[i + 1].begin : index.end;
    info.first_record = skip;
    info.records = std::min(take, chunk.records - skip);
    info.first_number = number;
    number += info.records;
    info.line = chunk.line;
    info.compressed = index.compression != formats::Compression::kNone;
    take -= info.records;
    skip = 0;
    chunks_.push_back(info);
  }
}

uint64_t FileSource::Fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, size] : names_and_sizes_) {
    hash = HashNumber(HashBytes(hash, name), size);
  }
  for (const ChunkInfo& chunk : chunks_) {
    hash = HashNumber(HashNumber(HashNumber(hash, chunk.file), chunk.begin), chunk.first_record);
    hash = HashNumber(hash, chunk.records);
  }
  return hash;
}

absl::StatusOr<std::shared_ptr<const io::RandomAccessFile>> FileSource::OpenFile(int file) const {
  MutexLock lock(&mutex_);
  const auto found = open_.find(file);
  if (found != open_.end()) return found->second;
  if (open_.size() >= kMaxOpenFiles) open_.erase(open_.begin());
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> opened,
                          file_system_.OpenForRead(paths_[file]));
  open_.emplace(file, opened);
  return opened;
}

std::shared_ptr<Chunk> FileSource::NewPiece(size_t chunk) const {
  std::shared_ptr<Chunk> piece = pool_->Take();
  piece->file = paths_[chunks_[chunk].file];
  piece->first_number = chunks_[chunk].first_number;
  return piece;
}

absl::StatusOr<std::shared_ptr<const Chunk>> FileSource::Read(size_t chunk) const {
  const ChunkInfo& info = chunks_[chunk];
  MUSTER_ASSIGN_OR_RETURN(auto file, OpenFile(info.file));
  if (info.compressed) {
    MUSTER_ASSIGN_OR_RETURN(auto stream, StreamCompressed(chunk, std::move(file), ~uint64_t{0}));
    MUSTER_ASSIGN_OR_RETURN(auto whole, stream->Next());
    return whole != nullptr ? whole : NewPiece(chunk);
  }
  std::shared_ptr<Chunk> piece = NewPiece(chunk);
  const size_t size = info.end - info.begin;
  if (piece->bytes.capacity() < size) {
    piece->bytes = {};  // its old content need not move
    piece->bytes.reserve(size);
  }
  piece->bytes.resize(size);
  MUSTER_ASSIGN_OR_RETURN(const size_t count,
                          file->Read(info.begin, piece->bytes.size(), piece->bytes.data()));
  if (count < piece->bytes.size()) {
    return absl::DataLossError(StrCat(piece->file, ": ends at byte ", info.begin + count,
                                      ", but had ", info.end,
                                      " bytes when it was opened: it must not change meanwhile"));
  }
  MUSTER_RETURN_IF_ERROR(Cut(chunk, piece.get()));
  return piece;
}

absl::StatusOr<std::unique_ptr<ChunkStream>> FileSource::Stream(size_t chunk) const {
  const ChunkInfo& info = chunks_[chunk];
  if (!info.compressed) return std::make_unique<OnePieceStream>(*this, chunk);
  MUSTER_ASSIGN_OR_RETURN(auto file, OpenFile(info.file));
  return StreamCompressed(chunk, std::move(file), kChunkBytes);
}

absl::Status FileSource::CountBad(size_t chunk, uint64_t count, BadRecord bad) const {
  {
    MutexLock lock(&mutex_);
    uint64_t& noted = bad_[chunk];
    const bool is_new = count > noted;
    noted = std::max(noted, count);
    uint64_t total = 0;
    for (const auto& [unused, of_chunk] : bad_) total += of_chunk;
    if (total > max_bad_records_) return TooManyBad(bad.why, max_bad_records_);
    if (!is_new) return absl::OkStatus();
  }
  if (spec_.take_bad_record) spec_.take_bad_record(std::move(bad));
  return absl::OkStatus();
}

uint64_t FileSource::bad_records() const {
  MutexLock lock(&mutex_);
  uint64_t total = 0;
  for (const auto& [unused, bad] : bad_) total += bad;
  return total;
}

}  // namespace muster::data
