#include "muster/checkpoint/frozen_tensors.h"

#include <algorithm>
#include <cstring>

namespace muster::checkpoint {
namespace {

constexpr uint64_t kBlockBytes = 256;
constexpr uint64_t kSmallestRow = 64;
constexpr uint64_t kLargestRow = 4096;
constexpr uint64_t kUnit = 64;  // places in aside_ are counted in units of this; place 0 is none
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

uint64_t RowBytes(const Tensor& tensor) {
  if (tensor.shape.empty() || tensor.shape[0] <= 0) return tensor.bytes.size();
  return tensor.bytes.size() / static_cast<uint64_t>(tensor.shape[0]);
}

uint64_t BlockBytes(const Tensor& tensor) {
  const uint64_t row = RowBytes(tensor);
  return row >= kSmallestRow && row <= kLargestRow ? row : kBlockBytes;
}

}  // namespace

void FrozenTensors::Layout(std::span<const Tensor> tensors) {
  parts_.resize(tensors.size());
  parts_of_.clear();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Part& part = parts_[i];
    part.tensor = tensors[i];
    part.read = 0;
    part.block_bytes = BlockBytes(tensors[i]);
    part.kept.resize((tensors[i].bytes.size() + part.block_bytes - 1) / part.block_bytes);
    const int variable = tensors[i].variable;
    if (variable < 0) continue;
    if (parts_of_.size() <= static_cast<size_t>(variable)) parts_of_.resize(variable + 1);
    parts_of_[variable].push_back(i);
  }
}

void FrozenTensors::Prepare(std::span<const Tensor> tensors) {
  const MutexLock lock(&mutex_);
  Layout(tensors);
}

void FrozenTensors::Freeze(std::span<const Tensor> tensors) {
  const MutexLock lock(&mutex_);
  Layout(tensors);
  next_part_ = 0;
  aside_bytes_ = kUnit;
  frozen_.store(true, std::memory_order_release);
}

void FrozenTensors::Thaw() {
  const MutexLock lock(&mutex_);
  frozen_.store(false, std::memory_order_release);
  for (Part& part : parts_) {
    part.read = part.tensor.bytes.size();
    if (aside_bytes_ > kUnit) std::fill(part.kept.begin(), part.kept.end(), 0);
  }
}

char* FrozenTensors::GetPlace(uint32_t place) {
  const uint64_t offset = place * kUnit;
  return aside_[offset / kChunkBytes].get() + offset % kChunkBytes;
}

// Copies the blocks with the bytes [begin, end), except those that were copied or read before.
void FrozenTensors::Keep(Part& part, uint64_t begin, uint64_t end) {
  const uint64_t size = part.tensor.bytes.size();
  begin = std::max(begin, part.read);
  end = std::min(end, size);
  if (begin >= end) return;  // else a shorter last block would be copied even after a Thaw
  for (uint64_t block = begin / part.block_bytes; block * part.block_bytes < end; ++block) {
    if (part.kept[block] != 0) continue;
    const uint64_t at = block * part.block_bytes;
    const uint64_t bytes = std::min(part.block_bytes, size - at);
    if (aside_bytes_ / kChunkBytes != (aside_bytes_ + bytes - 1) / kChunkBytes) {
      aside_bytes_ = (aside_bytes_ / kChunkBytes + 1) * kChunkBytes;  // a block lies in one chunk
    }
    if (aside_bytes_ / kChunkBytes >= aside_.size()) {
      aside_.emplace_back(new char[kChunkBytes]);
    }
    part.kept[block] = static_cast<uint32_t>(aside_bytes_ / kUnit);
    std::memcpy(GetPlace(part.kept[block]), part.tensor.bytes.data() + at, bytes);
    aside_bytes_ += (bytes + kUnit - 1) / kUnit * kUnit;
  }
}

void FrozenTensors::KeepAll(int variable) {
  const MutexLock lock(&mutex_);
  if (static_cast<size_t>(variable) >= parts_of_.size()) return;
  for (const size_t i : parts_of_[variable]) Keep(parts_[i], 0, parts_[i].tensor.bytes.size());
}

void FrozenTensors::KeepRows(int variable, std::span<const int32_t> rows) {
  const MutexLock lock(&mutex_);
  if (static_cast<size_t>(variable) >= parts_of_.size()) return;
  for (const size_t i : parts_of_[variable]) {
    const uint64_t row_bytes = RowBytes(parts_[i].tensor);
    for (const int32_t row : rows) {
      Keep(parts_[i], static_cast<uint64_t>(row) * row_bytes,
           (static_cast<uint64_t>(row) + 1) * row_bytes);
    }
  }
}

// Returns the next bytes of this part: those of one kept block, or of a run of blocks that have not
// changed.
size_t FrozenTensors::ReadSome(Part& part, std::span<char> piece) {
  const uint64_t most = std::min<uint64_t>(piece.size(), part.tensor.bytes.size() - part.read);
  uint64_t block = part.read / part.block_bytes;
  if (part.kept[block] != 0) {
    const uint64_t inside = part.read % part.block_bytes;
    const uint64_t bytes = std::min(most, part.block_bytes - inside);
    std::memcpy(piece.data(), GetPlace(part.kept[block]) + inside, bytes);
    return bytes;
  }
  const uint64_t begin = part.read;
  while (block < part.kept.size() && part.kept[block] == 0 &&
         block * part.block_bytes < begin + most) {
    ++block;
  }
  const uint64_t bytes = std::min(most, block * part.block_bytes - begin);
  std::memcpy(piece.data(), part.tensor.bytes.data() + begin, bytes);
  return bytes;
}

void FrozenTensors::Read(std::span<char> piece) {
  const MutexLock lock(&mutex_);
  while (!piece.empty()) {
    Part& part = parts_[next_part_];
    if (part.read == part.tensor.bytes.size()) {
      ++next_part_;
      continue;
    }
    const size_t bytes = ReadSome(part, piece);
    part.read += bytes;
    piece = piece.subspan(bytes);
  }
}

}  // namespace muster::checkpoint
