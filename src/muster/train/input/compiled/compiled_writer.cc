#include "muster/train/input/compiled/compiled_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/base/strings.h"

namespace muster::train {
namespace {

constexpr size_t kMostSpare = 16;
constexpr int kRowsAtOnce = 64;  // compiled, then copied

void PrefetchForWriting(const char* begin, size_t bytes) {
  constexpr size_t kLine = 64;
  for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(begin + i, 1);
  __builtin_prefetch(begin + bytes - 1, 1);
}

template <size_t kPiece>
void CopyByPieces(const char* from, size_t bytes, char* to) {
  for (size_t i = 0; i + kPiece < bytes; i += kPiece) std::memcpy(to + i, from + i, kPiece);
  std::memcpy(to + bytes - kPiece, from + bytes - kPiece, kPiece);
}

// A call of memcpy takes longer than a row of some 100 bytes.
void CopyRow(std::string_view row, char* to) {
  if (row.size() >= 32) return CopyByPieces<32>(row.data(), row.size(), to);
  if (row.size() >= 8) return CopyByPieces<8>(row.data(), row.size(), to);
  CopyByPieces<1>(row.data(), row.size(), to);
}

}  // namespace

CompiledWriter::CompiledWriter(std::unique_ptr<CompiledFileWriter> file,
                               const data::RecordSource& source, CompiledLayout layout,
                               std::string key)
    : file_(std::move(file)), compiler_(layout), finder_(source.chunks()) {
  info_ = {.key = std::move(key),
           .files = source.files(),
           .chunks = source.chunks(),
           .blocks = std::vector<CompiledBlock>(source.chunks().size()),
           .fingerprint = source.fingerprint(),
           .layout = std::move(layout)};
  if (!info_.layout.has_lists()) row_bytes_ = info_.layout.fixed_bytes();
  for (const data::ChunkInfo& chunk : info_.chunks) {
    chunks_.push_back(
        {.first_number = chunk.first_number, .records = chunk.records, .missing = chunk.records});
    left_ += chunk.records > 0 ? 1 : 0;
  }
}

absl::StatusOr<bool> CompiledWriter::Add(int64_t epoch, const features::FeatureBatch& batch,
                                         std::span<const uint64_t> numbers) {
  if (!compiler_.Take(batch)) {
    return absl::FailedPreconditionError("its batches differ in their columns");
  }
  if (std::exchange(epoch_, epoch) != epoch) StartEpoch();
  const auto rows = static_cast<int>(numbers.size());
  for (int begin = 0; begin < rows; begin += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, rows - begin);
    const std::span<const uint64_t> some = numbers.subspan(static_cast<size_t>(begin));
    Chunk* chunks[kRowsAtOnce];
    for (int i = 0; i < count; ++i) {
      Chunk& chunk = chunks_[finder_.Find(some[i])];
      chunks[i] = &chunk;
      if (chunk.missing == 0 || row_bytes_ == 0) continue;
      if (chunk.bytes.empty()) MakeRoom(&chunk);
      PrefetchForWriting(chunk.bytes.data() + (some[i] - chunk.first_number) * row_bytes_,
                         row_bytes_);
    }
    compiler_.Compile(begin, begin + count);
    for (int i = 0; i < count; ++i) {
      Chunk& chunk = *chunks[i];
      if (chunk.missing == 0) continue;
      Take(begin + i, some[i] - chunk.first_number, &chunk);
      if (waiting_bytes_ > kMostWaiting) {
        return absl::ResourceExhaustedError(
            "one of its files is compressed, and its rows do not fit in memory");
      }
      if (--chunk.missing == 0) MUSTER_RETURN_IF_ERROR(Write(&chunk));
    }
  }
  return left_ == 0;
}

// Rows of chunks of which not all have come are forgotten: they come again.
void CompiledWriter::StartEpoch() {
  for (Chunk& chunk : chunks_) {
    if (chunk.missing == 0) continue;
    chunk.missing = chunk.records;
    chunk.bytes = {};
    chunk.rows = {};
  }
  waiting_bytes_ = 0;
}

void CompiledWriter::MakeRoom(Chunk* chunk) {
  if (!spare_.empty()) {
    chunk->bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  chunk->bytes.resize(static_cast<size_t>(chunk->records) * row_bytes_);
  waiting_bytes_ += chunk->bytes.size();
}

void CompiledWriter::Take(int row, uint64_t record, Chunk* chunk) {
  if (row_bytes_ > 0) {
    CopyRow(compiler_.GetFixed(row), chunk->bytes.data() + record * row_bytes_);
    return;
  }
  const size_t begin = chunk->bytes.size(), size = compiler_.GetSize(row), end = begin + size;
  chunk->bytes.resize(end + RowCompiler::kSlack);
  compiler_.Write(row, chunk->bytes.data() + begin);
  chunk->bytes.resize(end);
  chunk->rows.push_back({.record = static_cast<uint32_t>(record),
                         .begin = static_cast<uint32_t>(begin),
                         .end = static_cast<uint32_t>(end)});
  waiting_bytes_ += size;
}

absl::Status CompiledWriter::Write(Chunk* chunk) {
  CompiledBlock& block = info_.blocks[static_cast<size_t>(chunk - chunks_.data())];
  std::string bytes = std::exchange(chunk->bytes, {});
  waiting_bytes_ -= bytes.size();
  --left_;
  if (row_bytes_ > 0) {
    MUSTER_ASSIGN_OR_RETURN(block, file_->AddBlock(bytes, row_bytes_));
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(bytes));
    return absl::OkStatus();
  }
  std::vector<Chunk::Row> rows = std::exchange(chunk->rows, {});
  std::ranges::sort(rows, {}, &Chunk::Row::record);
  std::string in_order;
  std::vector<uint32_t> ends;
  for (const Chunk::Row& row : rows) {
    in_order.append(bytes, row.begin, row.end - row.begin);
    ends.push_back(static_cast<uint32_t>(in_order.size()));
  }
  MUSTER_ASSIGN_OR_RETURN(block, file_->AddBlock(in_order, ends));
  return absl::OkStatus();
}

absl::Status CompiledWriter::Finish(std::vector<std::string> warnings) {
  info_.warnings = std::move(warnings);
  return file_->Finish(info_);
}

}  // namespace muster::train
