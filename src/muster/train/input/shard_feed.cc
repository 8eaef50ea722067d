#include "muster/train/input/shard_feed.h"

#include "muster/base/strings.h"

namespace muster::train {

void ShardFeed::Read(std::unique_ptr<data::BatchReader> reader, const data::Position* start) {
  SetReader(std::move(reader));
  if (start == nullptr) return;
  at_ = {start->epoch, start->emitted};
  bad_rows_ = start->bad_records;
}

absl::Status ShardFeed::Read(Cached cached, const data::ReaderSpec& spec,
                             const data::Position* start) {
  cached_ = std::move(cached);
  spec_ = spec;
  if (start != nullptr) {
    last_ = *start;
    at_ = {start->epoch, start->emitted};
    bad_rows_ = start->bad_records;
  }
  may_compile_ = !cached_.key.empty() && cached_.compiled == nullptr;
  compiled_ = cached_.compiled;
  if (compiled_ == nullptr) return ReadSource(start);
  for (const std::string& warning : compiled_->info().warnings) notes_.push_back(warning);
  return ReadCompiled(start);
}

void ShardFeed::SetReader(std::unique_ptr<data::BatchReader> reader) {
  dropped_before_ = dropped_;
  const std::lock_guard lock(mutex_);
  reader_ = std::move(reader);
  if (stopped_) reader_->Stop();
}

absl::Status ShardFeed::ReadSource(const data::Position* start) {
  from_beginning_ = start == nullptr;
  MUSTER_ASSIGN_OR_RETURN(
      auto reader, data::BatchReader::Create(cached_.source, maker_.used().schema, spec_, start));
  SetReader(std::move(reader));
  return absl::OkStatus();
}

absl::Status ShardFeed::ReadCompiled(const data::Position* start) {
  compiled_transform_ = NewCompiledTransform(compiled_->info().layout);
  // It may read the rows before `start`.
  auto reader = data::BatchReader::Create(compiled_->source(), CompiledSchema(), spec_, start);
  if (IsCompiledDamage(reader.status())) return ReadDataAgain(reader.status(), start);
  MUSTER_RETURN_IF_ERROR(reader.status());
  SetReader(*std::move(reader));
  return absl::OkStatus();
}

absl::Status ShardFeed::ReadDataAgain(const absl::Status& damage, const data::Position* start) {
  std::string why(ToStd(damage.message()));
  if (why.find(compiled_->path()) == why.npos) why = StrCat(compiled_->path(), ": ", why);
  notes_.push_back(StrCat("the compiled features in ", why, ": the data itself is read again"));
  cached_.cache->Remove(*compiled_);
  MUSTER_ASSIGN_OR_RETURN(cached_.source, cached_.open());
  compiled_ = nullptr;
  may_compile_ = true;
  return ReadSource(start);
}

void ShardFeed::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (reader_ != nullptr) reader_->Stop();
}

absl::StatusOr<bool> ShardFeed::Next(formats::Columns* columns, InputBatch* batch) {
  has_columns_ = !is_compiled();
  if (is_compiled()) {
    absl::StatusOr<bool> more = NextCompiled(batch);
    if (more.ok() || !IsCompiledDamage(more.status())) return more;
    MUSTER_RETURN_IF_ERROR(ReadDataAgain(more.status(), last_ ? &*last_ : nullptr));
    has_columns_ = true;
  }
  MUSTER_ASSIGN_OR_RETURN(const bool more, reader_->Next(columns));
  ended_ = !more;
  bool is_batch = false;
  if (more) {
    MUSTER_ASSIGN_OR_RETURN(is_batch, maker_.Make(*reader_, columns, &batch->features));
    batch->position = reader_->position();
    at_ = {batch->position.epoch, batch->position.emitted};
  }
  bad_rows_ = reader_->bad_rows();
  dropped_ = dropped_before_ + reader_->dropped();
  if (ended_ && may_compile_ && !is_whole_ && from_beginning_ && reader_->dropped() > 0) {
    GiveUpCompiling(
        absl::FailedPreconditionError("--drop-remainder leaves rows out of each epoch, and no "
                                      "epoch had all rows of each part of the "
                                      "data (muster records compile writes them all)"));
  }
  if (!is_batch) return false;
  batch->epoch = reader_->epoch();
  batch->shard = shard_;
  if (may_compile_) MUSTER_RETURN_IF_ERROR(Compile(*batch));
  maker_.AddClassWeights(&batch->features);
  return true;
}

absl::StatusOr<bool> ShardFeed::NextCompiled(InputBatch* batch) {
  MUSTER_ASSIGN_OR_RETURN(const bool more, reader_->Next(&compiled_rows_));
  ended_ = !more;
  if (more) {
    MUSTER_RETURN_IF_ERROR(compiled_transform_->Apply(compiled_rows_, maker_.with_labels(),
                                                      &batch->features, nullptr));
    batch->position = reader_->position();
    last_ = batch->position;
    at_ = {batch->position.epoch, batch->position.emitted};
    batch->epoch = reader_->epoch();
    batch->shard = shard_;
    maker_.AddClassWeights(&batch->features);
  }
  dropped_ = dropped_before_ + reader_->dropped();
  return more;
}

absl::Status ShardFeed::Compile(const InputBatch& batch) {
  last_ = batch.position;
  if (is_whole_) return absl::OkStatus();  // the batch is of the next epoch
  const absl::StatusOr<bool> is_whole = AddToWriter(batch);
  if (is_whole.ok()) {
    is_whole_ = *is_whole;
  } else {
    GiveUpCompiling(is_whole.status());
  }
  return absl::OkStatus();
}

void ShardFeed::GiveUpCompiling(const absl::Status& why) {
  notes_.push_back(cached_.cache->NotKept(ToStd(why.message())));
  writer_ = nullptr;
  may_compile_ = false;
}

absl::Status ShardFeed::FinishCompiled() {
  if (!std::exchange(is_whole_, false)) return absl::OkStatus();
  absl::Status status = cached_.check_data();
  if (status.ok()) status = writer_->Finish(warnings_);
  if (!status.ok()) {
    GiveUpCompiling(status);
    return absl::OkStatus();
  }
  writer_ = nullptr;
  may_compile_ = false;
  cached_.cache->RemoveOldest();
  if (spec_.epochs > 0 && last_->epoch + 1 >= spec_.epochs) return absl::OkStatus();
  std::string note;
  compiled_ = cached_.cache->Find(cached_.key, &note);
  if (!note.empty()) notes_.push_back(std::move(note));
  return is_compiled() ? ReadCompiled(&*last_) : absl::OkStatus();
}

absl::StatusOr<bool> ShardFeed::AddToWriter(const InputBatch& batch) {
  if (bad_rows_ + cached_.source->bad_records() > 0) {
    return absl::FailedPreconditionError("the data has bad records");
  }
  if (writer_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(auto file, cached_.cache->Begin(cached_.key));
    CompiledLayout layout =
        MakeLayout(maker_.used(), maker_.request(), maker_.with_labels(), batch.features);
    writer_ = std::make_unique<CompiledWriter>(std::move(file), *cached_.source, std::move(layout),
                                               cached_.key);
  }
  numbers_.clear();
  for (int row = 0; row < batch.features.rows; ++row) numbers_.push_back(reader_->Number(row));
  return writer_->Add(batch.epoch, batch.features, numbers_);
}

int ShardFeed::ConsumeDropped() {
  const uint64_t before = std::exchange(dropped_consumed_, dropped_);
  return static_cast<int>(dropped_ - before);
}

void ShardFeed::KeepWarnings(const std::vector<std::string>& warnings) {
  warnings_.insert(warnings_.end(), warnings.begin(), warnings.end());
}

}  // namespace muster::train
