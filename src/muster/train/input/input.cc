#include "muster/train/input/input.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "muster/data/batch_stream_reader.h"
#include "muster/features/coverage.h"
#include "muster/features/scale.h"
#include "muster/train/input/growing_input.h"
#include "muster/train/input/key_check.h"
#include "muster/train/input/row_values.h"
#include "muster/train/input/shared_feeds.h"
#include "muster/train/input/usual_rates.h"

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

// Returns the columns whose scale does not matter: only parts with input_batch_norm read them, or
// the head reads them as an item's probability, of which the differences of logarithms count.
std::vector<std::string> ColumnsOfAnyScale(const model::ModelSpec& model) {
  std::vector<std::string> columns = {model.head.sampling_probability};
  std::set<std::string> scaled;
  if (model.linear) scaled.insert(model.linear->columns.begin(), model.linear->columns.end());
  if (model.fm) scaled.insert(model.fm->columns.begin(), model.fm->columns.end());
  for (const auto& [name, part] : model.DeepParts()) {
    if (part->input_batch_norm) {
      columns.insert(columns.end(), part->columns.begin(), part->columns.end());
    } else {
      scaled.insert(part->columns.begin(), part->columns.end());
    }
  }
  std::erase_if(columns, [&](const std::string& name) { return scaled.contains(name); });
  return columns;
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

  const formats::Schema& schema() const { return used_.schema; }
  void Add(std::unique_ptr<data::BatchReader> reader, int shard, const data::Position* start) {
    Feed& feed = feeds_.emplace_back();
    feed.reader = std::move(reader);
    feed.shard = shard;
    if (start == nullptr) return;
    feed.at = {start->epoch, start->emitted};
    feed.bad_rows = start->bad_records;
  }

  // Thread-safe. See data::BatchReader::Stop.
  void Stop() {
    for (const Feed& feed : feeds_) feed.reader->Stop();
  }

  absl::StatusOr<bool> Produce(InputGroup* group) {
    group->count = 0;
    group->dropped_at_end = 0;
    group->warnings.clear();
    group->bad_at_end.clear();
    bool more = true;
    for (int rows = 0; rows < kRowsPerGroup;) {
      if (group->count == group->batches.size()) group->batches.emplace_back();
      MUSTER_ASSIGN_OR_RETURN(more, Fill(&group->batches[group->count]));
      if (!more) break;
      rows += group->batches[group->count++].features.rows;
    }
    // The last group has no batches: it only reports records left out after the last batch.
    if (coverage_) group->warnings = coverage_->ConsumeWarnings(/*ended=*/!more);
    if (scale_) AddScaleWarnings(/*ended=*/!more, &group->warnings);
    if (!more && spec_.watch_words && !std::exchange(told_of_words_, true)) {
      std::ranges::move(features::WarnOfUnknownWords(used_, transform_->CountWords()),
                        std::back_inserter(group->warnings));
    }
    if (group->count == 0) {
      group->dropped_at_end = ConsumeDropped();
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
  struct Feed {
    std::unique_ptr<data::BatchReader> reader;
    int shard = 0;
    std::pair<int64_t, uint64_t> at = {0, 0};  // the epoch, and the records read in it
    bool ended = false;
    uint64_t dropped = 0;   // records that batches have reported
    uint64_t bad_rows = 0;  // of the newest epoch
  };

  Producer(const model::Model& model, const InputSpec& spec, model::RowTransform rows)
      : spec_(spec),
        head_(model.spec.head),
        used_(std::move(rows.used)),
        transform_(std::move(rows.transform)),
        key_(used_.key.empty() ? -1 : used_.schema.Find(used_.key)),
        group_(spec.group.empty() ? -1 : used_.schema.Find(spec.group)),
        columns_(used_.schema) {
    if (spec.with_labels && !spec.class_weights.empty()) classes_ = model.spec;
    if (!spec.watch_data) return;
    coverage_.emplace(used_);
    if (!model.spec.exported) {
      scale_.emplace(used_, model.request, ColumnsOfAnyScale(model.spec));
      slow_parts_ = DescribeSlowParts(model.spec);
    }
  }

  // Each warning also names learning rates that would be too small for scaled inputs.
  void AddScaleWarnings(bool ended, std::vector<std::string>* warnings) {
    for (std::string& warning : scale_->ConsumeWarnings(ended)) {
      for (const std::string& line : slow_parts_) warning += StrCat("; ", line);
      warnings->push_back(std::move(warning));
    }
  }

  absl::StatusOr<bool> Fill(InputBatch* batch) {
    while (Feed* const feed = LeastAdvanced()) {
      MUSTER_ASSIGN_OR_RETURN(const bool more, feed->reader->Next(&columns_));
      feed->ended = !more;
      bool is_batch = false;
      if (more) {
        MUSTER_ASSIGN_OR_RETURN(is_batch, Transform(*feed->reader, &batch->features));
        batch->position = feed->reader->position();
        feed->at = {batch->position.epoch, batch->position.emitted};
      }
      feed->bad_rows = feed->reader->bad_rows();
      if (!is_batch) continue;
      if (coverage_) coverage_->Add(columns_);
      if (scale_) scale_->Add(batch->features);
      batch->epoch = feed->reader->epoch();
      batch->shard = feed->shard;
      batch->dropped = GetDropped(*feed);
      batch->bad.clear();
      std::swap(batch->bad, bad_);
      batch->bad_rows = BadRows();
      FillKeys(*feed->reader, &batch->keys);
      FillMessages(*feed->reader, &batch->messages);
      FillGroups(&batch->groups);
      return true;
    }
    return false;
  }

  // The feed that has advanced least; null when all have ended.
  Feed* LeastAdvanced() {
    Feed* found = nullptr;
    for (Feed& feed : feeds_) {
      if (!feed.ended && (found == nullptr || feed.at < found->at)) found = &feed;
    }
    return found;
  }

  static int GetDropped(Feed& feed) {
    const uint64_t before = std::exchange(feed.dropped, feed.reader->dropped());
    return static_cast<int>(feed.dropped - before);
  }
  int ConsumeDropped() {
    int dropped = 0;
    for (Feed& feed : feeds_) dropped += GetDropped(feed);
    return dropped;
  }

  uint64_t BadRows() const {
    uint64_t rows = 0;
    for (const Feed& feed : feeds_) rows += feed.bad_rows;
    return rows;
  }

  // Leaves out rows that do not fit, and replaces them by the next ones, as long as max_bad_records
  // allows it. Returns false if no row is left for a batch.
  absl::StatusOr<bool> Transform(data::BatchReader& reader, features::FeatureBatch* batch) {
    while (true) {
      int bad_row = -1;
      absl::Status status = transform_->Apply(columns_, spec_.with_labels, batch, &bad_row);
      if (status.ok() && spec_.with_labels) status = CheckLabels(*batch, &bad_row);
      if (status.ok()) {
        if (classes_) ApplyClassWeights(*classes_, spec_.class_weights, batch);
        return true;
      }
      if (bad_row < 0) return status;
      MUSTER_RETURN_IF_ERROR(reader.RejectRow(bad_row, status, &columns_));
      MUSTER_ASSIGN_OR_RETURN(const bool is_batch, reader.Refill(&columns_));
      if (!is_batch) return false;
    }
  }

  absl::Status CheckLabels(const features::FeatureBatch& batch, int* bad_row) const {
    std::string why;
    *bad_row = engine::FindBadLabel(head_, batch.labels, &why);
    if (*bad_row < 0) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("label '", used_.label.input, "': ", why));
  }

  void FillKeys(const data::BatchReader& reader, std::vector<std::string>* keys) const {
    keys->clear();
    if (!spec_.with_keys) return;
    if (key_ >= 0) return PrintValues(columns_, used_.schema, key_, keys);
    for (int row = 0; row < columns_.rows(); ++row) keys->push_back(StrCat(reader.Number(row)));
  }

  void FillMessages(const data::BatchReader& reader, std::vector<data::MessageId>* messages) const {
    messages->clear();
    if (!spec_.with_messages) return;
    for (int row = 0; row < columns_.rows(); ++row) messages->push_back(reader.Message(row));
  }

  void FillGroups(std::vector<uint64_t>* groups) const {
    groups->clear();
    if (group_ >= 0) NumberValues(columns_, used_.schema, group_, groups);
  }

  const InputSpec spec_;
  std::optional<model::ModelSpec> classes_;  // whose classes have weights
  const engine::HeadSpec head_;
  const features::FeatureSpec used_;
  const std::unique_ptr<features::FeatureTransform> transform_;
  const int key_;
  const int group_;
  std::optional<features::CoverageWatch> coverage_;
  std::optional<features::ScaleWatch> scale_;
  std::vector<std::string> slow_parts_;  // further advice for the warnings of scale_
  bool told_of_words_ = false;
  formats::Columns columns_;
  std::vector<Feed> feeds_;
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
  std::unique_ptr<Input> input(new Input(spec.reader));
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  data::SourceSpec source_spec = SourceFor(model.spec, spec);
  data::ReaderSpec reader_spec = spec.reader;
  source_spec.take_bad_record = reader_spec.take_bad_record = producer->BadRecords();
  std::shared_ptr<const data::RecordSource> source;
  if (!data::IsBatchStream(spec.source)) {
    MUSTER_ASSIGN_OR_RETURN(source,
                            data::OpenSource(files, source_spec, spec.reader.max_bad_records));
    input->sources_.push_back(source);
    input->CheckKey(files, model, spec);
  }
  const formats::Schema& schema = producer->schema();
  MUSTER_ASSIGN_OR_RETURN(
      auto reader, source == nullptr
                       ? data::OpenBatchStream(files, source_spec, schema, reader_spec)
                       : data::BatchReader::Create(std::move(source), schema, reader_spec, start));
  producer->Add(std::move(reader), 0, start);
  input->Start(std::move(producer));
  return input;
}

absl::StatusOr<std::unique_ptr<Input>> Input::OpenShards(io::FileSystem& files,
                                                         const model::Model& model,
                                                         const InputSpec& spec,
                                                         std::span<const InputShard> shards) {
  std::unique_ptr<Input> input(new Input(spec.reader));
  std::vector<data::Shard> cuts;
  for (const InputShard& each : shards) cuts.push_back(each.shard);
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  data::SourceSpec source_spec = SourceFor(model.spec, spec);
  data::ReaderSpec reader_spec = spec.reader;
  source_spec.take_bad_record = reader_spec.take_bad_record = producer->BadRecords();
  MUSTER_ASSIGN_OR_RETURN(auto sources,
                          data::OpenShards(files, source_spec, cuts, spec.reader.max_bad_records));
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto& source = input->sources_.emplace_back(std::move(sources[i]));
    if (source->records() == 0) continue;  // there are more shards than files or records
    const data::Position* const start = shards[i].start ? &*shards[i].start : nullptr;
    MUSTER_ASSIGN_OR_RETURN(
        auto reader, data::BatchReader::Create(source, producer->schema(), reader_spec, start));
    producer->Add(std::move(reader), shards[i].index, start);
    if (start == nullptr) continue;
    const auto batch = static_cast<uint64_t>(spec.reader.batch_size);
    input->first_step_ += start->epoch * input->GetBatches(source->records()) +
                          static_cast<int64_t>((start->emitted + batch - 1) / batch);
  }
  input->CheckKey(files, model, spec);
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

absl::StatusOr<std::unique_ptr<BatchSource>> OpenInput(io::FileSystem& files,
                                                       const model::Model& model,
                                                       const InputSpec& spec,
                                                       const InputFn& input_fn,
                                                       const data::Position* start) {
  if (input_fn) return input_fn(files, model, start);
  if (spec.growth != nullptr) return OpenGrowing(files, model, spec, start);
  if (spec.feeds != nullptr && start == nullptr) return spec.feeds->Open(files, model, spec);
  return Input::Open(files, model, spec, start);
}

}  // namespace muster::train
