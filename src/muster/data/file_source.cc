#include "muster/data/file_source.h"

#include <algorithm>
#include <utility>

#include "muster/data/spooled_chunk.h"

namespace muster::data {
namespace {

// At the end of an epoch, about this many chunks are free again: those that a shuffle had open and
// had read ahead.
constexpr size_t kMaxFreeChunks = 18;
constexpr size_t kMaxFreeChunkBytes = size_t{4} << 20;
constexpr size_t kMaxOpenFiles = 64;

}  // namespace

std::shared_ptr<Chunk> ChunkPool::Get() {
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
  chunk->bad.clear();
  chunk->memory.clear();
  MutexLock lock(&mutex_);
  if (free_.size() < kMaxFreeChunks) free_.push_back(std::move(chunk));
}

FileSource::FileSource(io::FileSystem& file_system, const std::vector<IndexedItem>& files,
                       const SourceSpec& spec, uint64_t max_bad_records)
    : file_system_(file_system),
      spec_(spec),
      max_bad_records_(max_bad_records),
      table_(MakeChunkTable(files, spec.shard, spec.first_number)),
      pool_(std::make_shared<ChunkPool>()) {}

absl::StatusOr<std::shared_ptr<const io::RandomAccessFile>> FileSource::OpenFile(int file) const {
  {
    MutexLock lock(&mutex_);
    const auto found = open_.find(file);
    if (found != open_.end()) return found->second;
  }
  // The mutex is not held, so that other chunks can be read while a file on another machine is
  // being opened.
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> opened,
                          file_system_.OpenForRead(table_.names[file]));
  MutexLock lock(&mutex_);
  if (open_.size() >= kMaxOpenFiles) open_.erase(open_.begin());
  return open_.emplace(file, std::move(opened)).first->second;
}

std::shared_ptr<Chunk> FileSource::NewPiece(size_t chunk) const {
  std::shared_ptr<Chunk> piece = pool_->Get();
  piece->file = table_.names[table_.chunks[chunk].file];
  piece->first_number = table_.chunks[chunk].first_number;
  return piece;
}

absl::StatusOr<std::shared_ptr<const Chunk>> FileSource::Read(size_t chunk) const {
  const ChunkInfo& info = table_.chunks[chunk];
  MUSTER_ASSIGN_OR_RETURN(auto file, OpenFile(info.file));
  if (info.compressed) return ReadCompressed(chunk, file);
  std::shared_ptr<Chunk> piece = NewPiece(chunk);
  const size_t size = info.end - info.begin;
  if (piece->bytes.capacity() < size) {
    piece->bytes = {};  // so that the old contents are not copied
    piece->bytes.reserve(size);
  }
  piece->bytes.resize(size);
  MUSTER_ASSIGN_OR_RETURN(const size_t count,
                          file->Read(info.begin, piece->bytes.size(), piece->bytes.data()));
  if (count < piece->bytes.size()) {
    return absl::DataLossError(
        StrCat(piece->file, ": ends at byte ", info.begin + count, ", but had ", info.end,
               " bytes when it was opened: it must not change while it is read"));
  }
  MUSTER_RETURN_IF_ERROR(Cut(chunk, piece.get()));
  return piece;
}

absl::StatusOr<std::shared_ptr<const Chunk>> FileSource::ReadCompressed(
    size_t chunk, const std::shared_ptr<const io::RandomAccessFile>& file) const {
  const ChunkInfo& info = table_.chunks[chunk];
  if (info.end - info.begin > kMostBytesInMemory) {
    MUSTER_ASSIGN_OR_RETURN(const auto pieces, StreamCompressed(chunk, file, kChunkBytes));
    auto spooled = SpoolChunk(*pieces, NewPiece(chunk), GetSpoolFolder(), max_bad_records_);
    if (spooled.ok()) return spooled;
  }
  // Also where no file could be made or filled. An error of the data comes again.
  MUSTER_ASSIGN_OR_RETURN(const auto stream, StreamCompressed(chunk, file, ~uint64_t{0}));
  MUSTER_ASSIGN_OR_RETURN(auto whole, stream->Next());
  return whole != nullptr ? whole : NewPiece(chunk);
}

absl::StatusOr<std::unique_ptr<ChunkStream>> FileSource::Stream(size_t chunk) const {
  const ChunkInfo& info = table_.chunks[chunk];
  if (!info.compressed) return NewOnePieceStream(*this, chunk);
  MUSTER_ASSIGN_OR_RETURN(auto file, OpenFile(info.file));
  return StreamCompressed(chunk, std::move(file), kChunkBytes);
}

absl::Status FileSource::CountBad(size_t chunk, const Chunk& piece) const {
  for (const BadRecord& bad : piece.bad) {
    {
      MutexLock lock(&mutex_);
      uint64_t& before = counted_before_[chunk];
      if (bad.number < before) {
        if (bad_records_ > max_bad_records_) return TooManyBad(bad.why, max_bad_records_);
        continue;
      }
      before = bad.number + 1;
      if (++bad_records_ > max_bad_records_) return TooManyBad(bad.why, max_bad_records_);
    }
    if (spec_.take_bad_record) spec_.take_bad_record(bad);
  }
  return absl::OkStatus();
}

uint64_t FileSource::bad_records() const {
  MutexLock lock(&mutex_);
  return bad_records_;
}

}  // namespace muster::data
