#include "muster/train/input.h"

#include <algorithm>
#include <utility>

#include "muster/data/batch_stream_reader.h"

namespace muster::train {
namespace {

constexpr int kRowsPerGroup = 2048;
constexpr size_t kGroupsAhead = 2;

}  // namespace

class Input::Producer {
 public:
  static absl::StatusOr<std::unique_ptr<Producer>> Create(const model::Model& model,
                                                          const InputSpec& spec) {
    MUSTER_ASSIGN_OR_RETURN(model::RowTransform rows,
                            model::NewRowTransform(model, spec.with_labels, spec.with_keys));
    return std::unique_ptr<Producer>(new Producer(model, spec, std::move(rows)));
  }

  const formats::Schema& schema() const { return used_.schema; }
  void Add(std::unique_ptr<data::BatchReader> reader, int part, const data::Position* start) {
    Feed& feed = feeds_.emplace_back();
    feed.reader = std::move(reader);
    feed.part = part;
    if (start != nullptr) feed.at = {start->epoch, start->emitted};
  }

  absl::StatusOr<bool> Produce(Group* group) {
    group->count = 0;
    group->dropped_at_end = 0;
    for (int rows = 0; rows < kRowsPerGroup;) {
      if (group->count == group->batches.size()) group->batches.emplace_back();
      MUSTER_ASSIGN_OR_RETURN(const bool more, Fill(&group->batches[group->count]));
      if (!more) break;
      rows += group->batches[group->count++].features.rows;
    }
    // The end has nothing but this, and comes behind the batches.
    if (group->count == 0) group->dropped_at_end = TakeDropped();
    return group->count > 0 || group->dropped_at_end > 0;
  }

 private:
  struct Feed {
    std::unique_ptr<data::BatchReader> reader;
    int part = 0;
    std::pair<int64_t, uint64_t> at = {0, 0};  // epoch, and records taken in it
    bool ended = false;
    uint64_t dropped = 0;  // that batches have told of
  };

  Producer(const model::Model& model, const InputSpec& spec, model::RowTransform rows)
      : spec_(spec),
        head_(model.spec.head),
        used_(std::move(rows.used)),
        transform_(std::move(rows.transform)),
        key_(used_.key.empty() ? -1 : used_.schema.Find(used_.key)),
        columns_(used_.schema) {}

  absl::StatusOr<bool> Fill(InputBatch* batch) {
    while (Feed* const feed = FurthestBehind()) {
      MUSTER_ASSIGN_OR_RETURN(const bool more, feed->reader->Next(&columns_));
      feed->ended = !more;
      if (!more) continue;
      MUSTER_RETURN_IF_ERROR(Transform(*feed->reader, &batch->features));
      batch->position = feed->reader->position();
      batch->epoch = feed->reader->epoch();
      batch->part = feed->part;
      batch->dropped = DroppedOf(*feed);
      feed->at = {batch->position.epoch, batch->position.emitted};
      FillKeys(&batch->keys);
      return true;
    }
    return false;
  }

  // Null when all have ended.
  Feed* FurthestBehind() {
    Feed* found = nullptr;
    for (Feed& feed : feeds_) {
      if (!feed.ended && (found == nullptr || feed.at < found->at)) found = &feed;
    }
    return found;
  }

  static int DroppedOf(Feed& feed) {
    const uint64_t before = std::exchange(feed.dropped, feed.reader->dropped());
    return static_cast<int>(feed.dropped - before);
  }
  int TakeDropped() {
    int dropped = 0;
    for (Feed& feed : feeds_) dropped += DroppedOf(feed);
    return dropped;
  }

  // Leaves out rows that do not fit while the budget of bad records lasts.
  absl::Status Transform(data::BatchReader& reader, features::FeatureBatch* batch) {
    while (true) {
      int bad_row = -1;
      absl::Status status = transform_->Apply(columns_, spec_.with_labels, batch, &bad_row);
      if (status.ok() && spec_.with_labels) status = CheckLabels(*batch, &bad_row);
      if (status.ok()) return status;
      if (bad_row < 0) return status;
      MUSTER_RETURN_IF_ERROR(reader.RejectRow(bad_row, status, &columns_));
    }
  }

  absl::Status CheckLabels(const features::FeatureBatch& batch, int* bad_row) const {
    std::string why;
    *bad_row = engine::FindBadLabel(head_, batch.labels, &why);
    if (*bad_row < 0) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("label '", used_.label.input, "': ", why));
  }

  void FillKeys(std::vector<std::string>* keys) const {
    keys->clear();
    if (key_ < 0) return;
    const formats::Column& column = columns_.column(key_);
    for (int row = 0; row < columns_.rows(); ++row) {
      switch (used_.schema.fields[key_].type) {
        case formats::ValueType::kInt:
          keys->push_back(StrCat(column.ints[row]));
          break;
        case formats::ValueType::kFloat:
          keys->push_back(StrCat(column.floats[row]));
          break;
        case formats::ValueType::kString:
          keys->emplace_back(column.strings[row]);
          break;
      }
    }
  }

  const InputSpec spec_;
  const engine::HeadSpec head_;
  const features::FeatureSpec used_;
  const std::unique_ptr<features::FeatureTransform> transform_;
  const int key_;
  formats::Columns columns_;
  std::vector<Feed> feeds_;
};

Input::Input(const data::ReaderSpec& reader_spec) : reader_spec_(reader_spec) {}
Input::~Input() = default;

absl::StatusOr<std::unique_ptr<Input>> Input::Open(io::FileSystem& files, const model::Model& model,
                                                   const InputSpec& spec,
                                                   const data::Position* start) {
  std::unique_ptr<Input> input(new Input(spec.reader));
  std::shared_ptr<const data::RecordSource> source;
  if (!data::IsBatchStream(spec.source)) {
    MUSTER_ASSIGN_OR_RETURN(source,
                            data::OpenSource(files, spec.source, spec.reader.max_bad_records));
    input->sources_.push_back(source);
  }
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  const formats::Schema& schema = producer->schema();
  MUSTER_ASSIGN_OR_RETURN(
      auto reader, source == nullptr
                       ? data::OpenBatchStream(files, spec.source, schema, spec.reader)
                       : data::BatchReader::Create(std::move(source), schema, spec.reader, start));
  producer->Add(std::move(reader), 0, start);
  input->Start(std::move(producer));
  return input;
}

absl::StatusOr<std::unique_ptr<Input>> Input::OpenParts(io::FileSystem& files,
                                                        const model::Model& model,
                                                        const InputSpec& spec,
                                                        std::span<const InputPart> parts) {
  std::unique_ptr<Input> input(new Input(spec.reader));
  std::vector<data::Shard> shards;
  for (const InputPart& part : parts) shards.push_back(part.shard);
  MUSTER_ASSIGN_OR_RETURN(
      auto sources, data::OpenShards(files, spec.source, shards, spec.reader.max_bad_records));
  MUSTER_ASSIGN_OR_RETURN(auto producer, Producer::Create(model, spec));
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& source = input->sources_.emplace_back(std::move(sources[i]));
    if (source->records() == 0) continue;  // there are more parts than files or records
    const data::Position* const start = parts[i].start ? &*parts[i].start : nullptr;
    MUSTER_ASSIGN_OR_RETURN(
        auto reader, data::BatchReader::Create(source, producer->schema(), spec.reader, start));
    producer->Add(std::move(reader), parts[i].index, start);
    if (start == nullptr) continue;
    const auto batch = static_cast<uint64_t>(spec.reader.batch_size);
    input->first_step_ += start->epoch * input->BatchesOf(source->records()) +
                          static_cast<int64_t>((start->emitted + batch - 1) / batch);
  }
  input->Start(std::move(producer));
  return input;
}

void Input::Start(std::unique_ptr<Producer> producer) {
  producer_ = std::move(producer);
  prefetch_ = std::make_unique<data::Prefetch<Group>>(
      [producer = producer_.get()](Group* group) { return producer->Produce(group); },
      kGroupsAhead);
}

uint64_t Input::records() const {
  uint64_t records = 0;
  for (const auto& source : sources_) records += source->records();
  return records;
}

int64_t Input::BatchesOf(uint64_t records) const {
  const auto rows = static_cast<int64_t>(records);
  const int64_t batch = reader_spec_.batch_size;
  return reader_spec_.drop_remainder ? rows / batch : (rows + batch - 1) / batch;
}

int64_t Input::steps() const {
  int64_t per_epoch = 0;
  for (const auto& source : sources_) per_epoch += BatchesOf(source->records());
  return per_epoch * std::max<int64_t>(reader_spec_.epochs, 0);
}

absl::StatusOr<const InputBatch*> Input::Next() {
  if (next_ == group_.count) {
    prefetch_->Recycle(std::move(group_));
    group_ = Group();
    next_ = 0;
    MUSTER_ASSIGN_OR_RETURN(const bool more, prefetch_->Next(&group_));
    if (!more) return nullptr;
    dropped_at_end_ += group_.dropped_at_end;
    if (group_.count == 0) return nullptr;
  }
  return &group_.batches[next_++];
}

absl::StatusOr<std::unique_ptr<BatchSource>> OpenInput(io::FileSystem& files,
                                                       const model::Model& model,
                                                       const InputSpec& spec,
                                                       const InputFn& input_fn,
                                                       const data::Position* start) {
  if (input_fn) return input_fn(files, model, start);
  return Input::Open(files, model, spec, start);
}

}  // namespace muster::train
