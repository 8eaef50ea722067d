#include "muster/train/input/growing_input.h"

#include <optional>
#include <utility>
#include <vector>

#include "muster/features/coverage.h"
#include "muster/train/input/told_segments.h"

namespace muster::train {
namespace {

constexpr uint64_t kNewestRecords = 1'000'000;

class GrowingInput : public BatchSource {
 public:
  // `ends`: the input ends after the last segment that has begun.
  GrowingInput(io::FileSystem& files, const model::Model& model, const InputSpec& spec,
               bool ends = false)
      : files_(files), model_(model), spec_(spec), growth_(std::move(spec_.growth)), ends_(ends) {
    none_yet_.is_none_yet = true;
    number_ = spec.first_segment;
    // A segment may be made of offsets that have no record.
    spec_.source.may_be_empty = true;
  }

  // Returns false if the segment has not begun. `start`: the position in it; null: its beginning.
  absl::StatusOr<bool> Open(int64_t segment, const data::Position* start) {
    number_ = segment;
    MUSTER_ASSIGN_OR_RETURN(const auto found, growth_->GetSegment(files_, segment));
    if (!found) return false;
    records_ = found->records;
    taken_ = start != nullptr ? start->emitted : 0;
    InputSpec spec = spec_;
    spec.source.patterns = found->patterns;
    spec.reader.first_epoch = segment;
    spec.reader.epochs = segment + 1;
    // What a few records lack says nothing about the data.
    spec.watch_data = spec_.watch_data && records_ >= features::CoverageWatch::kRows;
    if (spec.watch_data) spec_.watch_data = false;
    MUSTER_ASSIGN_OR_RETURN(input_, Input::Open(files_, model_, spec, start));
    records_ = input_->records();  // without those that are held back
    return true;
  }

  absl::StatusOr<const InputBatch*> Next() override {
    while (true) {
      if (input_ == nullptr) {
        MUSTER_ASSIGN_OR_RETURN(const bool is_open, Open(number_, nullptr));
        if (!is_open) return ends_ ? nullptr : &none_yet_;
      }
      MUSTER_ASSIGN_OR_RETURN(const InputBatch* const batch, input_->Next());
      for (std::string& warning : input_->ConsumeWarnings()) {
        warnings_.push_back(std::move(warning));
      }
      if (batch != nullptr) {
        taken_ = batch->position.emitted;
        return batch;
      }
      bad_records_ += input_->bad_records();
      input_.reset();
      ++number_;
      records_ = taken_ = 0;
    }
  }

  // None where the segment ends: the next one may begin, or not.
  std::optional<int> next_rows() const override {
    const std::optional<int> rows = input_ != nullptr ? input_->next_rows() : std::nullopt;
    return rows == 0 ? std::nullopt : rows;
  }
  uint64_t bad_records() const override {
    return bad_records_ + (input_ != nullptr ? input_->bad_records() : 0);
  }
  bool has_positions() const override { return true; }
  std::vector<std::string> ConsumeWarnings() override { return std::exchange(warnings_, {}); }
  std::optional<uint64_t> lag() override {
    const auto later = growth_->CountLater();
    if (!later.ok()) return std::nullopt;
    const auto shards = static_cast<uint64_t>(spec_.source.shard.count);
    return *later + (records_ > taken_ ? (records_ - taken_) * shards : 0);
  }

 private:
  io::FileSystem& files_;
  const model::Model& model_;
  InputSpec spec_;
  const std::shared_ptr<data::GrowingData> growth_;
  const bool ends_;
  InputBatch none_yet_;
  int64_t number_ = 0;        // of the segment that is open, or comes next
  uint64_t records_ = 0;      // of the segment that is open, as announced
  uint64_t taken_ = 0;        // of these
  uint64_t bad_records_ = 0;  // of the segments before it
  std::vector<std::string> warnings_;
  std::unique_ptr<Input> input_;  // null between segments
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenGrowing(io::FileSystem& files,
                                                         const model::Model& model,
                                                         const InputSpec& spec,
                                                         const data::Position* start) {
  auto input = std::make_unique<GrowingInput>(files, model, spec);
  if (start == nullptr) return input;
  MUSTER_ASSIGN_OR_RETURN(const bool is_open, input->Open(start->epoch, start));
  if (is_open) return input;
  return NoSuchSegment(start->epoch);
}

absl::StatusOr<std::unique_ptr<BatchSource>> OpenNewestSegments(io::FileSystem& files,
                                                                const model::Model& model,
                                                                const InputSpec& spec) {
  std::vector<uint64_t> records;  // by segment
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const auto segment,
                            spec.growth->GetSegment(files, static_cast<int64_t>(records.size())));
    if (!segment) break;
    records.push_back(segment->records);
  }
  size_t first = records.size();
  for (uint64_t newest = 0; first > 0 && newest < kNewestRecords;) newest += records[--first];
  auto input = std::make_unique<GrowingInput>(files, model, spec, /*ends=*/true);
  absl::StatusOr<bool> is_open = true;
  do {
    is_open = input->Open(static_cast<int64_t>(first), nullptr);
    // Retention may have removed records of a segment.
  } while (absl::IsOutOfRange(is_open.status()) && ++first < records.size());
  MUSTER_RETURN_IF_ERROR(is_open.status());
  return input;
}

}  // namespace muster::train
