#include "muster/train/input/compiled/compiled_writer.h"

#include <algorithm>
#include <utility>

#include "muster/base/strings.h"

namespace muster::train {
namespace {

constexpr size_t kMostSpare = 16;

}  // namespace

CompiledWriter::CompiledWriter(std::unique_ptr<CompiledFileWriter> file,
                               const data::RecordSource& source, CompiledLayout layout,
                               std::string key)
    : file_(std::move(file)), compiler_(layout) {
  info_ = {.key = std::move(key),
           .files = source.files(),
           .chunks = source.chunks(),
           .blocks = std::vector<CompiledBlock>(source.chunks().size()),
           .fingerprint = source.fingerprint(),
           .layout = std::move(layout)};
  if (!info_.layout.has_lists()) row_bytes_ = info_.layout.fixed_bytes();
  written_.resize(info_.chunks.size());
  waiting_.resize(info_.chunks.size());
  for (size_t i = 0; i < info_.chunks.size(); ++i) {
    first_numbers_.push_back(info_.chunks[i].first_number);
    records_ += info_.chunks[i].records;
    written_[i] = info_.chunks[i].records == 0 ? 1 : 0;
    left_ += written_[i] != 0 ? 0 : 1;
  }
}

absl::StatusOr<bool> CompiledWriter::Add(int64_t epoch, const features::FeatureBatch& batch,
                                         std::span<const uint64_t> numbers) {
  if (!compiler_.Take(batch)) {
    return absl::FailedPreconditionError("its batches differ in their columns");
  }
  if (std::exchange(epoch_, epoch) != epoch) {
    for (auto& each : waiting_) each.reset();
    waiting_bytes_ = 0;
  }
  for (size_t row = 0; row < numbers.size(); ++row) {
    const size_t chunk = FindChunk(numbers[row]);
    if (written_[chunk] != 0) continue;
    auto& waiting = waiting_[chunk];
    if (waiting == nullptr) {
      waiting = std::make_unique<Waiting>();
      if (!spare_.empty()) {
        waiting->bytes = std::move(spare_.back());
        spare_.pop_back();
      }
      waiting->bytes.resize(static_cast<size_t>(info_.chunks[chunk].records) * row_bytes_);
      waiting_bytes_ += waiting->bytes.size();
    }
    const size_t before = waiting->bytes.size();
    Take(static_cast<int>(row), numbers[row] - first_numbers_[chunk], waiting.get());
    waiting_bytes_ += waiting->bytes.size() - before;
    if (waiting_bytes_ > kMostWaiting) {
      return absl::ResourceExhaustedError(
          "one of its files is compressed, and its rows do not fit in memory");
    }
    if (++waiting->count == info_.chunks[chunk].records) MUSTER_RETURN_IF_ERROR(Write(chunk));
  }
  return left_ == 0;
}

// Chunks are about equally long, so that the number tells about where its chunk is.
size_t CompiledWriter::FindChunk(uint64_t number) const {
  constexpr int kSteps = 4;
  const size_t chunks = first_numbers_.size();
  const double share = static_cast<double>(number - first_numbers_.front()) /
                       static_cast<double>(std::max<uint64_t>(records_, 1));
  size_t guess = std::min(static_cast<size_t>(share * static_cast<double>(chunks)), chunks - 1);
  for (int step = 0; step < kSteps; ++step) {
    if (first_numbers_[guess] > number) {
      --guess;
    } else if (guess + 1 < chunks && first_numbers_[guess + 1] <= number) {
      ++guess;
    } else {
      return guess;
    }
  }
  const auto after = std::upper_bound(first_numbers_.begin(), first_numbers_.end(), number);
  return static_cast<size_t>(after - first_numbers_.begin()) - 1;
}

void CompiledWriter::Take(int row, uint64_t record, Waiting* waiting) {
  if (row_bytes_ > 0) {
    compiler_.GetFixed(row).copy(waiting->bytes.data() + record * row_bytes_, row_bytes_);
    return;
  }
  const size_t begin = waiting->bytes.size(), end = begin + compiler_.GetSize(row);
  waiting->bytes.resize(end + RowCompiler::kSlack);
  compiler_.Write(row, waiting->bytes.data() + begin);
  waiting->bytes.resize(end);
  waiting->rows.push_back({.record = static_cast<uint32_t>(record),
                           .begin = static_cast<uint32_t>(begin),
                           .end = static_cast<uint32_t>(end)});
}

absl::Status CompiledWriter::Write(size_t chunk) {
  const std::unique_ptr<Waiting> waiting = std::move(waiting_[chunk]);
  waiting_bytes_ -= waiting->bytes.size();
  written_[chunk] = 1;
  --left_;
  if (row_bytes_ > 0) {
    MUSTER_ASSIGN_OR_RETURN(info_.blocks[chunk], file_->AddBlock(waiting->bytes, row_bytes_));
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(waiting->bytes));
    return absl::OkStatus();
  }
  std::ranges::sort(waiting->rows, {}, &Waiting::Row::record);
  std::string block;
  std::vector<uint32_t> ends;
  for (const Waiting::Row& row : waiting->rows) {
    block.append(waiting->bytes, row.begin, row.end - row.begin);
    ends.push_back(static_cast<uint32_t>(block.size()));
  }
  MUSTER_ASSIGN_OR_RETURN(info_.blocks[chunk], file_->AddBlock(block, ends));
  return absl::OkStatus();
}

absl::Status CompiledWriter::Finish(std::vector<std::string> warnings) {
  info_.warnings = std::move(warnings);
  return file_->Finish(info_);
}

}  // namespace muster::train
