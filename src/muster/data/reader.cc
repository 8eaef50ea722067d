#include "muster/data/reader.h"

#include <utility>

#include "muster/data/read_ahead.h"
#include "muster/data/record_order.h"

namespace muster::data {
namespace {

constexpr size_t kPrefetchRecords = 4;
constexpr size_t kPrefetchBytes = 256;
constexpr int kMaxChunksAhead = 64;  // there is a thread for each

void PrefetchRecord(const Pick& pick) {
  const char* const record = pick.chunk->records[pick.record].data();
  for (size_t line = 0; line < kPrefetchBytes; line += 64) __builtin_prefetch(record + line);
}

class BatchReaderImpl : public BatchReader {
 public:
  BatchReaderImpl(std::shared_ptr<const RecordSource> source, const ReaderSpec& spec,
                  std::unique_ptr<formats::RowDecoder> decoder)
      : source_(std::move(source)),
        spec_(spec),
        decoder_(std::move(decoder)),
        chunks_(*source_, spec.chunks_ahead),
        epoch_(spec.first_epoch) {}

  absl::Status Start(const Position* start) {
    if (start == nullptr) return OpenEpoch(nullptr);
    if (start->source_fingerprint != Fingerprint()) {
      return absl::FailedPreconditionError(
          "the saved position belongs to other data: the files, their sizes, the shard or the "
          "choice whether "
          "they are shuffled differ; give those again, or begin the new data with --fresh-data");
    }
    if (start->seed != spec_.seed) {
      return absl::FailedPreconditionError(
          StrCat("the saved position was reached with seed ", start->seed, ", not ", spec_.seed,
                 "; give --seed ", start->seed, ", or begin the data anew with --fresh-data"));
    }
    epoch_ = start->epoch;
    bad_records_ = start->bad_records;
    return OpenEpoch(start);
  }

  absl::StatusOr<bool> Next(formats::Columns* columns) override;
  Position position() const override;
  int64_t epoch() const override { return batch_epoch_; }
  uint64_t dropped() const override { return dropped_; }
  std::string Origin(int row) const override { return rows_[row].chunk->Where(rows_[row].record); }
  uint64_t Number(int row) const override { return rows_[row].chunk->Number(rows_[row].record); }
  MessageId Message(int row) const override {
    const auto& [chunk, record] = rows_[static_cast<size_t>(row)];
    MessageId id = {.offset = chunk->offsets[record]};
    if (!chunk->keys.empty() && chunk->keys[record]) id.key = *chunk->keys[record];
    return id;
  }
  absl::Status RejectRow(int row, const absl::Status& why, formats::Columns* columns) override;
  absl::StatusOr<bool> Refill(formats::Columns* columns) override;
  uint64_t bad_rows() const override {
    const bool at_end = spec_.epochs > 0 && epoch_ >= spec_.epochs;
    return at_end ? bad_of_ended_ : bad_records_;
  }
  void Stop() override { chunks_.Stop(); }

 private:
  absl::Status OpenEpoch(const Position* start);
  // The position of a shuffled reader does not fit an unshuffled one, and vice versa.
  uint64_t Fingerprint() const {
    return spec_.shuffle ? ~source_->fingerprint() : source_->fingerprint();
  }
  // Adds rows until the batch is full or the epoch ends.
  absl::Status FillBatch(formats::Columns* columns);
  bool IsBatch(const formats::Columns& columns) const {
    return columns.rows() == spec_.batch_size || (columns.rows() > 0 && !spec_.drop_remainder);
  }
  absl::Status Decode(formats::Columns* columns);
  absl::Status DecodeRuns(formats::Columns* columns);
  absl::Status CountBad(const absl::Status& why, const Pick& pick);
  absl::Status NoBatch() const;

  const std::shared_ptr<const RecordSource> source_;
  const ReaderSpec spec_;
  const std::unique_ptr<formats::RowDecoder> decoder_;
  int layout_ = 0;  // the layout of the decoder's last record
  ReadAhead chunks_;
  std::unique_ptr<RecordOrder> order_;
  int64_t epoch_;
  int64_t batch_epoch_ = 0;
  uint64_t bad_records_ = 0;     // in this epoch
  uint64_t bad_of_ended_ = 0;    // in the epoch before
  bool gave_batch_ = false;      // Next has given one that Refill has not taken back
  int ended_without_batch_ = 0;  // how many epochs in a row
  uint64_t dropped_ = 0;
  std::vector<Pick> picks_;
  std::vector<Pick> rows_;                          // of the current batch
  std::vector<std::shared_ptr<const Chunk>> held_;  // the chunks that rows_ point into
  absl::Status failed_;
};

absl::Status BatchReaderImpl::OpenEpoch(const Position* start) {
  if (spec_.shuffle) {
    MUSTER_ASSIGN_OR_RETURN(
        order_, NewShuffledOrder(*source_, spec_.seed, epoch_, spec_.open_chunks, start, chunks_));
  } else {
    MUSTER_ASSIGN_OR_RETURN(order_, NewFileOrder(*source_, start, chunks_));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchReaderImpl::Next(formats::Columns* columns) {
  MUSTER_RETURN_IF_ERROR(failed_);
  if (std::exchange(gave_batch_, false)) ended_without_batch_ = 0;
  while (spec_.epochs <= 0 || epoch_ < spec_.epochs) {
    columns->Clear();
    rows_.clear();
    held_.clear();
    failed_ = FillBatch(columns);
    MUSTER_RETURN_IF_ERROR(failed_);
    if (IsBatch(*columns)) {
      batch_epoch_ = epoch_;
      return gave_batch_ = true;
    }
    dropped_ += static_cast<uint64_t>(columns->rows());
    // The first epoch that ends here may have given batches before, but the next one has given
    // none.
    if (spec_.epochs <= 0 && ++ended_without_batch_ == 2) return NoBatch();
    ++epoch_;
    bad_of_ended_ = std::exchange(bad_records_, 0);
    failed_ = OpenEpoch(nullptr);
    MUSTER_RETURN_IF_ERROR(failed_);
  }
  columns->Clear();
  return false;
}

absl::Status BatchReaderImpl::NoBatch() const {
  if (source_->records() == 0 && bad_records_ == 0) {
    return absl::InvalidArgumentError(
        "this task's share of the data has no records, and data that is repeated without an end "
        "needs at least one in the share of each task: use fewer tasks, or --epochs, with which a "
        "task without records adds nothing");
  }
  const std::string bad =
      bad_records_ > 0 ? StrCat(", ", bad_records_, " of which were left out as bad,") : "";
  return absl::InvalidArgumentError(
      StrCat("an epoch of ", source_->records(), " records", bad, " gives no batch of ",
             spec_.batch_size, ": choose a smaller batch size, or keep the last batch of an epoch",
             bad.empty() ? "" : ", or mend the records"));
}

absl::Status BatchReaderImpl::FillBatch(formats::Columns* columns) {
  while (columns->rows() < spec_.batch_size) {
    picks_.clear();
    const size_t held = held_.size();
    MUSTER_RETURN_IF_ERROR(order_->Next(spec_.batch_size - columns->rows(), &picks_, &held_));
    for (size_t i = held; i < held_.size(); ++i) columns->KeepAlive(held_[i]);
    if (picks_.empty()) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(Decode(columns));
  }
  return absl::OkStatus();
}

absl::Status BatchReaderImpl::Decode(formats::Columns* columns) {
  if (decoder_->DecodesRuns()) return DecodeRuns(columns);
  for (size_t i = 0; i < picks_.size(); ++i) {
    if (i + kPrefetchRecords < picks_.size()) PrefetchRecord(picks_[i + kPrefetchRecords]);
    const Pick& pick = picks_[i];
    if (pick.chunk->layout != layout_) decoder_->UseLayout(layout_ = pick.chunk->layout);
    const absl::Status status = decoder_->Decode(pick.chunk->records[pick.record], columns);
    if (status.ok()) {
      rows_.push_back(pick);
    } else {
      MUSTER_RETURN_IF_ERROR(CountBad(status, pick));
    }
  }
  return absl::OkStatus();
}

// Decodes picks that follow one another in a chunk together.
absl::Status BatchReaderImpl::DecodeRuns(formats::Columns* columns) {
  for (size_t i = 0; i < picks_.size();) {
    const Chunk& chunk = *picks_[i].chunk;
    const size_t first = picks_[i].record;
    size_t count = 1;
    while (i + count < picks_.size() && picks_[i + count].chunk == &chunk &&
           picks_[i + count].record == first + count) {
      ++count;
    }
    if (chunk.layout != layout_) decoder_->UseLayout(layout_ = chunk.layout);
    size_t decoded = 0;
    const absl::Status status =
        decoder_->DecodeRun(std::span(chunk.records).subspan(first, count), columns, &decoded);
    for (size_t row = 0; row < decoded; ++row) rows_.push_back(picks_[i++]);
    if (!status.ok()) MUSTER_RETURN_IF_ERROR(CountBad(status, picks_[i++]));
  }
  return absl::OkStatus();
}

absl::Status BatchReaderImpl::CountBad(const absl::Status& why, const Pick& pick) {
  if (++bad_records_ + source_->bad_records() > spec_.max_bad_records) {
    return TooManyBad(Annotate(why, pick.chunk->Where(pick.record)), spec_.max_bad_records);
  }
  if (spec_.take_bad_record) {
    const bool is_text = pick.chunk->place != RecordPlace::kRow;
    spec_.take_bad_record({.number = pick.chunk->Number(pick.record),
                           .where = pick.chunk->Where(pick.record),
                           .bytes = std::string(is_text ? pick.chunk->records[pick.record] : ""),
                           .why = why});
  }
  return absl::OkStatus();
}

absl::Status BatchReaderImpl::RejectRow(int row, const absl::Status& why,
                                        formats::Columns* columns) {
  MUSTER_RETURN_IF_ERROR(CountBad(why, rows_[row]));
  columns->RemoveRow(row);
  rows_.erase(rows_.begin() + row);
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchReaderImpl::Refill(formats::Columns* columns) {
  failed_ = FillBatch(columns);
  MUSTER_RETURN_IF_ERROR(failed_);
  gave_batch_ = IsBatch(*columns);
  if (gave_batch_) return true;
  dropped_ += static_cast<uint64_t>(columns->rows());
  columns->Clear();
  return false;
}

Position BatchReaderImpl::position() const {
  Position position;
  position.source_fingerprint = Fingerprint();
  position.seed = spec_.seed;
  position.epoch = epoch_;
  position.bad_records = bad_records_;
  order_->Save(&position);
  return position;
}

absl::Status CheckReaderSpec(const ReaderSpec& spec) {
  if (spec.batch_size < 1) {
    return absl::InvalidArgumentError(
        StrCat("batch size ", spec.batch_size, ": it must be at least 1"));
  }
  if (spec.open_chunks < 1) {
    return absl::InvalidArgumentError(
        StrCat("open chunks ", spec.open_chunks, ": the number must be at least 1"));
  }
  if (spec.chunks_ahead < 0 || spec.chunks_ahead > kMaxChunksAhead) {
    return absl::InvalidArgumentError(
        StrCat("chunks ahead ", spec.chunks_ahead, ": it must be from 0 to ", kMaxChunksAhead));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchReader>> BatchReader::Create(
    std::shared_ptr<const RecordSource> source, const formats::Schema& schema,
    const ReaderSpec& spec, const Position* start) {
  MUSTER_RETURN_IF_ERROR(CheckReaderSpec(spec));
  MUSTER_ASSIGN_OR_RETURN(auto decoder, source->NewDecoder(schema));
  auto reader = std::make_unique<BatchReaderImpl>(std::move(source), spec, std::move(decoder));
  MUSTER_RETURN_IF_ERROR(reader->Start(start));
  return reader;
}

}  // namespace muster::data
