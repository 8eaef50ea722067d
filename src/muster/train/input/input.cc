#include "muster/train/input/input.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/data/batch_stream_reader.h"
#include "muster/features/coverage.h"
#include "muster/train/input/data_watch.h"
#include "muster/train/input/key_check.h"
#include "muster/train/input/row_values.h"
#include "muster/train/input/shard_feed.h"

namespace muster::train {
namespace {

constexpr int kRowsPerGroup = 2048;
constexpr size_t kGroupsAhead = 2;

// Returns the format of `spec`, completed for the model: the inputs name the cells of rows without
// names, and a row that needs no label may have neither label nor weight.
data::SourceSpec SourceFor(const model::ModelSpec& model, const InputSpec& spec) {
  data::SourceSpec source = spec.source;
  source.format = formats::NameColumns(source.format, model.features.schema);
  if (!spec.with_labels) source.may_lack = model.LabelInputs();
  return source;
}

// Shards may have the same to say.
void AddOnce(std::string warning, std::vector<std::string>* warnings) {
  if (std::ranges::find(*warnings, warning) == warnings->end()) {
    warnings->push_back(std::move(warning));
  }
}

// Returns what the cache of `spec` has for a shard, and by which key. Without a cache, and for data
// that is not compiled, that is nothing.
ShardFeed::Cached FindCached(io::FileSystem& files, const model::Model& model,
                             const InputSpec& spec, data::SourceSpec source,
                             const data::Shard& shard, std::vector<std::string>* warnings) {
  if (spec.cache == nullptr || spec.with_keys || spec.with_messages || !spec.group.empty()) {
    return {};
  }
  source.shard = shard;
  auto key = spec.cache->MakeKey(files, model, source, spec.with_labels);
  // An error is that of opening the data, which comes next.
  if (!key.ok() || key->text.empty()) return {};
  if (source.held_back.share > 0) {
    if (source.held_back.is_read) return {};  // an evaluation: its training has said why
    std::string note = spec.cache->NotKept(
        "--eval holds back a share of the data (with files for --eval they are kept)");
    AddOnce(std::move(note), warnings);
    return {};
  }
  ShardFeed::Cached cached = {.cache = spec.cache, .key = key->text};
  cached.check_data = [&files, source, key = *std::move(key)] {
    return CheckUnchanged(files, source, key);
  };
  std::string note;
  cached.compiled = spec.cache->Find(cached.key, &note);
  if (!note.empty()) warnings->push_back(std::move(note));
  return cached;
}

}  // namespace

class Input::Producer {
 public:
  static absl::StatusOr<std::unique_ptr<Producer>> Create(const model::Model& model,
                                                          const InputSpec& spec) {
    MUSTER_ASSIGN_OR_RETURN(
        model::RowTransform rows,
        model::NewRowTransform(model, spec.with_labels, spec.with_keys, spec.group));
    rows.used.schema = formats::WithMissing(std::move(rows.used.schema), spec.source.format);
    return std::unique_ptr<Producer>(new Producer(model, spec, std::move(rows)));
  }

  const formats::Schema& schema() const { return maker_.used().schema; }
  // Adds a feed of the shard, which reads nothing yet and will begin at `start`.
  ShardFeed& Add(int shard, const data::Position* start) {
    if (watch_) watch_->Begin(start);
    return *feeds_.emplace_back(std::make_unique<ShardFeed>(maker_, shard));
  }

  // Thread-safe. See data::BatchReader::Stop.
  void Stop() {
    for (const auto& feed : feeds_) feed->Stop();
  }

  absl::StatusOr<bool> Produce(InputGroup* group) {
    group->count = 0;
    group->dropped_at_end = 0;
    group->warnings.clear();
    group->bad_at_end.clear();
    bool more = true;
    const int wanted = spec_.batch_by_batch ? 1 : kRowsPerGroup;
    for (int rows = 0; rows < wanted;) {
      if (group->count == group->batches.size()) group->batches.emplace_back();
      MUSTER_ASSIGN_OR_RETURN(more, Fill(&group->batches[group->count]));
      if (!more) break;
      rows += group->batches[group->count++].features.rows;
    }
    // The last group has no batches: it only reports records left out after the last batch.
    MUSTER_RETURN_IF_ERROR(AddWarnings(/*ended=*/!more, &group->warnings));
    if (group->count == 0) {
      for (const auto& feed : feeds_) group->dropped_at_end += feed->ConsumeDropped();
      std::swap(group->bad_at_end, bad_);
      group->bad_rows = BadRows();
    }
    return group->count > 0 || group->dropped_at_end > 0 || !group->warnings.empty() ||
           !group->bad_at_end.empty();
  }

  // Receives the bad records of the producer's sources and readers, on their thread. Records that
  // are left out before the first batch belong to that batch.
  data::TakeBadRecord BadRecords() {
    return [this](data::BadRecord record) { bad_.push_back(std::move(record)); };
  }

 private:
  Producer(const model::Model& model, const InputSpec& spec, model::RowTransform rows)
      : spec_(spec),
        maker_(model, std::move(rows), spec.with_labels, spec.class_weights),
        key_(maker_.used().key.empty() ? -1 : schema().Find(maker_.used().key)),
        group_(spec.group.empty() ? -1 : schema().Find(spec.group)),
        columns_(schema()) {
    if (spec.watch_data) watch_.emplace(model, maker_);
  }

  // A compiled file is finished when it has all rows and the warnings that it keeps are known.
  absl::Status AddWarnings(bool ended, std::vector<std::string>* warnings) {
    const bool saw_all = ended || AllCompiled();
    if (watch_) {
      *warnings = watch_->ConsumeColumnWarnings(saw_all);
      for (const auto& feed : feeds_) feed->KeepWarnings(*warnings);
    }
    if (saw_all || !watch_ || watch_->knows_columns()) {
      for (const auto& feed : feeds_) MUSTER_RETURN_IF_ERROR(feed->FinishCompiled());
    }
    if (watch_) {
      std::ranges::move(watch_->ConsumeScaleWarnings(ended), std::back_inserter(*warnings));
    }
    if (ended && spec_.watch_words && !std::exchange(told_of_words_, true)) {
      std::ranges::move(
          features::WarnOfUnknownWords(maker_.used(), maker_.transform().CountWords()),
          std::back_inserter(*warnings));
    }
    for (const auto& feed : feeds_) {
      for (std::string& note : feed->ConsumeNotes()) AddOnce(std::move(note), warnings);
    }
    return absl::OkStatus();
  }

  // Whether every feed that compiles has seen all of its rows.
  bool AllCompiled() const {
    const auto is_whole = [](const auto& feed) { return feed->is_whole(); };
    const auto compiles = [](const auto& feed) { return feed->compiles(); };
    return std::ranges::any_of(feeds_, is_whole) && std::ranges::none_of(feeds_, compiles);
  }

  absl::StatusOr<bool> Fill(InputBatch* batch) {
    while (ShardFeed* const feed = LeastAdvanced()) {
      MUSTER_ASSIGN_OR_RETURN(const bool is_batch, feed->Next(&columns_, batch));
      if (!is_batch) continue;
      if (watch_) {
        watch_->Add(batch->epoch, feed->has_columns() ? &columns_ : nullptr, batch->features);
      }
      batch->dropped = feed->ConsumeDropped();
      batch->bad.clear();
      std::swap(batch->bad, bad_);
      batch->bad_rows = BadRows();
      FillKeys(feed->reader(), &batch->keys);
      FillMessages(feed->reader(), &batch->messages);
      FillGroups(&batch->groups);
      return true;
    }
    return false;
  }

  // The feed that has advanced least; null when all have ended.
  ShardFeed* LeastAdvanced() {
    ShardFeed* found = nullptr;
    for (const auto& feed : feeds_) {
      if (!feed->ended() && (found == nullptr || feed->at() < found->at())) found = feed.get();
    }
    return found;
  }

  uint64_t BadRows() const {
    uint64_t rows = 0;
    for (const auto& feed : feeds_) rows += feed->bad_rows();
    return rows;
  }

  void FillKeys(const data::BatchReader& reader, std::vector<std::string>* keys) const {
    keys->clear();
    if (!spec_.with_keys) return;
    if (key_ >= 0) return PrintValues(columns_, schema(), key_, keys);
    for (int row = 0; row < columns_.rows(); ++row) keys->push_back(StrCat(reader.Number(row)));
  }

  void FillMessages(const data::BatchReader& reader, std::vector<data::MessageId>* messages) const {
    messages->clear();
    if (!spec_.with_messages) return;
    for (int row = 0; row < columns_.rows(); ++row) messages->push_back(reader.Message(row));
  }

  void FillGroups(std::vector<uint64_t>* groups) const {
    groups->clear();
    if (group_ >= 0) NumberValues(columns_, schema(), group_, groups);
  }

  const InputSpec spec_;
  const BatchMaker maker_;
  const int key_;
  const int group_;
  std::optional<DataWatch> watch_;
  bool told_of_words_ = false;
  formats::Columns columns_;
  std::vector<std::unique_ptr<ShardFeed>> feeds_;
  std::vector<data::BadRecord> bad_;  // records that no batch has reported yet
};

Input::Input(const data::ReaderSpec& reader_spec) : reader_spec_(reader_spec) {}
// Stops the producer first, so that it does not read the rest of a group.
Input::~Input() {
  if (producer_ != nullptr) producer_->Stop();
}

absl::StatusOr<std::unique_ptr<Input>> Input::Open(io::FileSystem& files, const model::Model& model,
                                                   const InputSpec& spec,
                                                   const data::Position* start) {
  const InputShard shard = {.shard = spec.source.shard,
                            .start = start == nullptr ? std::nullopt : std::optional(*start)};
  if (!data::IsBatchStream(spec.source)) return OpenSources(files, model, spec, {&shard, 1}, false);
  std::unique_ptr<Input> input(new Input(spec.reader));
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  data::SourceSpec source_spec = SourceFor(model.spec, spec);
  data::ReaderSpec reader_spec = spec.reader;
  source_spec.take_bad_record = reader_spec.take_bad_record = producer->BadRecords();
  MUSTER_ASSIGN_OR_RETURN(
      auto reader, data::OpenBatchStream(files, source_spec, producer->schema(), reader_spec));
  producer->Add(0, start).Read(std::move(reader), start);
  input->Start(std::move(producer));
  return input;
}

absl::StatusOr<std::unique_ptr<Input>> Input::OpenShards(io::FileSystem& files,
                                                         const model::Model& model,
                                                         const InputSpec& spec,
                                                         std::span<const InputShard> shards) {
  return OpenSources(files, model, spec, shards, true);
}

absl::StatusOr<std::unique_ptr<Input>> Input::OpenSources(io::FileSystem& files,
                                                          const model::Model& model,
                                                          const InputSpec& spec,
                                                          std::span<const InputShard> shards,
                                                          bool may_be_empty) {
  std::unique_ptr<Input> input(new Input(spec.reader));
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  data::SourceSpec source_spec = SourceFor(model.spec, spec);
  data::ReaderSpec reader_spec = spec.reader;
  source_spec.take_bad_record = reader_spec.take_bad_record = producer->BadRecords();
  const auto open = [&files, source_spec, may_be_empty,
                     bad = spec.reader.max_bad_records](const std::vector<data::Shard>& cuts)
      -> absl::StatusOr<std::vector<std::unique_ptr<data::RecordSource>>> {
    if (may_be_empty) return data::OpenShards(files, source_spec, cuts, bad);
    std::vector<std::unique_ptr<data::RecordSource>> sources(1);
    MUSTER_ASSIGN_OR_RETURN(sources[0], data::OpenSource(files, source_spec, bad));
    return sources;
  };
  std::vector<ShardFeed::Cached> feeds;
  std::vector<data::Shard> cuts;
  for (const InputShard& each : shards) {
    cuts.push_back(each.shard);
    feeds.push_back(FindCached(files, model, spec, source_spec, each.shard, &input->warnings_));
    feeds.back().open =
        [open, cut = each.shard]() -> absl::StatusOr<std::shared_ptr<const data::RecordSource>> {
      MUSTER_ASSIGN_OR_RETURN(auto opened, open({cut}));
      return std::move(opened.front());
    };
  }
  const auto is_missing = [](const ShardFeed::Cached& feed) { return feed.compiled == nullptr; };
  const bool reads_all = std::ranges::all_of(feeds, is_missing);
  if (std::ranges::any_of(feeds, is_missing)) {
    MUSTER_ASSIGN_OR_RETURN(auto sources, open(cuts));
    for (size_t i = 0; i < feeds.size(); ++i) feeds[i].source = std::move(sources[i]);
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto& source = input->sources_.emplace_back(
        is_missing(feeds[i]) ? feeds[i].source : feeds[i].compiled->source());
    if (may_be_empty && source->records() == 0) continue;  // more shards than files or records
    const data::Position* const start = shards[i].start ? &*shards[i].start : nullptr;
    MUSTER_RETURN_IF_ERROR(
        producer->Add(shards[i].index, start).Read(std::move(feeds[i]), reader_spec, start));
    if (!may_be_empty || start == nullptr) continue;
    const auto batch = static_cast<uint64_t>(spec.reader.batch_size);
    input->first_step_ += start->epoch * input->GetBatches(source->records()) +
                          static_cast<int64_t>((start->emitted + batch - 1) / batch);
  }
  if (reads_all) input->CheckKey(files, model, spec);
  input->Start(std::move(producer));
  return input;
}

void Input::CheckKey(io::FileSystem& files, const model::Model& model, const InputSpec& spec) {
  if (!spec.watch_data || model.spec.exported) return;
  std::string warning =
      MakeKeyWarning(files, SourceFor(model.spec, spec), *sources_.front(), model.spec.features);
  if (!warning.empty()) warnings_.push_back(std::move(warning));
}

void Input::Start(std::unique_ptr<Producer> producer) {
  producer_ = std::move(producer);
  prefetch_ = std::make_unique<data::Prefetch<InputGroup>>(
      [producer = producer_.get()](InputGroup* group) { return producer->Produce(group); },
      kGroupsAhead);
}

uint64_t Input::records() const {
  uint64_t records = 0;
  for (const auto& source : sources_) records += source->records();
  return records;
}

uint64_t Input::unread_records() const {
  uint64_t records = 0;
  for (const auto& source : sources_) records += source->bad_records();
  return records;
}

uint64_t Input::bad_records() const { return bad_rows_ + unread_records(); }

int64_t Input::GetBatches(uint64_t records) const {
  const auto rows = static_cast<int64_t>(records);
  const int64_t batch = reader_spec_.batch_size;
  return reader_spec_.drop_remainder ? rows / batch : (rows + batch - 1) / batch;
}

int64_t Input::steps() const {
  int64_t per_epoch = 0;
  for (const auto& source : sources_) per_epoch += GetBatches(source->records());
  return per_epoch * std::max<int64_t>(reader_spec_.epochs, 0);
}

absl::StatusOr<bool> Input::NextGroup(InputGroup* group) {
  prefetch_->Recycle(std::move(*group));
  *group = InputGroup();
  return prefetch_->Next(group);
}

absl::StatusOr<const InputBatch*> Input::Next() {
  if (next_ == group_.count) {
    next_ = 0;
    MUSTER_ASSIGN_OR_RETURN(const bool more, NextGroup(&group_));
    if (!more) return nullptr;
    dropped_at_end_ += group_.dropped_at_end;
    std::move(group_.warnings.begin(), group_.warnings.end(), std::back_inserter(warnings_));
    for (data::BadRecord& record : group_.bad_at_end) bad_at_end_.push_back(std::move(record));
    if (group_.count == 0) {
      bad_rows_ = group_.bad_rows;
      return nullptr;
    }
  }
  const InputBatch& batch = group_.batches[next_++];
  bad_rows_ = batch.bad_rows;
  return &batch;
}

std::optional<int> Input::next_rows() const {
  if (next_ < group_.count) return group_.batches[next_].features.rows;
  const std::optional<const InputGroup*> group = prefetch_->Peek();
  if (!group) return std::nullopt;
  return *group == nullptr || (*group)->count == 0 ? 0 : (*group)->batches.front().features.rows;
}

}  // namespace muster::train
