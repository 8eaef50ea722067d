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
  // `source` is null for a stream of batches.
  static absl::StatusOr<std::unique_ptr<Producer>> Create(
      io::FileSystem& files, std::shared_ptr<const data::RecordSource> source,
      const model::Model& model, const InputSpec& spec, const data::Position* start) {
    std::unique_ptr<Producer> producer(new Producer(model, spec));
    MUSTER_ASSIGN_OR_RETURN(producer->transform_,
                            features::FeatureTransform::Create(producer->used_, model.request));
    const formats::Schema& schema = producer->used_.schema;
    if (source == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(producer->reader_,
                              data::OpenBatchStream(files, spec.source, schema, spec.reader));
    } else {
      MUSTER_ASSIGN_OR_RETURN(
          producer->reader_,
          data::BatchReader::Create(std::move(source), schema, spec.reader, start));
    }
    return producer;
  }

  absl::StatusOr<bool> Produce(Group* group) {
    group->count = 0;
    for (int rows = 0; rows < kRowsPerGroup;) {
      if (group->count == group->batches.size()) group->batches.emplace_back();
      MUSTER_ASSIGN_OR_RETURN(const bool more, Fill(&group->batches[group->count]));
      if (!more) break;
      rows += group->batches[group->count++].features.rows;
    }
    return group->count > 0;
  }

 private:
  Producer(const model::Model& model, const InputSpec& spec)
      : spec_(spec),
        head_(model.spec.head),
        used_(model::UsedFeatures(model.spec.features, model.request, spec.with_labels,
                                  spec.with_keys)),
        key_(used_.key.empty() ? -1 : used_.schema.Find(used_.key)),
        columns_(used_.schema) {}

  absl::StatusOr<bool> Fill(InputBatch* batch) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader_->Next(&columns_));
    if (!more) return false;
    MUSTER_RETURN_IF_ERROR(Transform(&batch->features));
    batch->position = reader_->position();
    batch->epoch = reader_->epoch();
    FillKeys(&batch->keys);
    return true;
  }

  // Leaves out rows that do not fit while the budget of bad records lasts.
  absl::Status Transform(features::FeatureBatch* batch) {
    while (true) {
      int bad_row = -1;
      absl::Status status = transform_->Apply(columns_, spec_.with_labels, batch, &bad_row);
      if (status.ok() && spec_.with_labels) status = CheckLabels(*batch, &bad_row);
      if (status.ok()) return status;
      if (bad_row < 0) return status;
      MUSTER_RETURN_IF_ERROR(reader_->RejectRow(bad_row, status, &columns_));
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
  const int key_;
  formats::Columns columns_;
  std::unique_ptr<features::FeatureTransform> transform_;
  std::unique_ptr<data::BatchReader> reader_;
};

Input::Input(const data::ReaderSpec& reader_spec) : reader_spec_(reader_spec) {}
Input::~Input() = default;

absl::StatusOr<std::unique_ptr<Input>> Input::Open(io::FileSystem& files, const model::Model& model,
                                                   const InputSpec& spec,
                                                   const data::Position* start) {
  std::unique_ptr<Input> input(new Input(spec.reader));
  if (!data::IsBatchStream(spec.source)) {
    MUSTER_ASSIGN_OR_RETURN(input->source_,
                            data::OpenSource(files, spec.source, spec.reader.max_bad_records));
  }
  MUSTER_ASSIGN_OR_RETURN(input->producer_,
                          Producer::Create(files, input->source_, model, spec, start));
  input->prefetch_ = std::make_unique<data::Prefetch<Group>>(
      [producer = input->producer_.get()](Group* group) { return producer->Produce(group); },
      kGroupsAhead);
  return input;
}

int64_t Input::steps() const {
  const int64_t batch = reader_spec_.batch_size;
  const auto rows = static_cast<int64_t>(records());
  const int64_t per_epoch = reader_spec_.drop_remainder ? rows / batch : (rows + batch - 1) / batch;
  return per_epoch * std::max<int64_t>(reader_spec_.epochs, 0);
}

absl::StatusOr<const InputBatch*> Input::Next() {
  if (next_ == group_.count) {
    prefetch_->Recycle(std::move(group_));
    group_ = Group();
    next_ = 0;
    MUSTER_ASSIGN_OR_RETURN(const bool more, prefetch_->Next(&group_));
    if (!more) return nullptr;
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
