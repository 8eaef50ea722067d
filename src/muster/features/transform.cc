#include "muster/features/transform.h"

#include <map>
#include <mutex>

#include "muster/base/nearest.h"
#include "muster/features/column_type.h"
#include "muster/features/dense.h"
#include "muster/features/fingerprint.h"
#include "muster/features/ids.h"

namespace muster::features {
namespace {

// Holds a Scratch for each Apply() call that runs at the same time. Uses a std::mutex, since
// ThreadSanitizer does not understand Debian's absl::Mutex.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> Get() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }

  void Return(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  // The counts of all that were returned, by column.
  std::map<std::string, WordCount> SumWords() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, WordCount> sums;
    for (const auto& scratch : free_) {
      for (const auto& [lookup, count] : scratch->words) {
        WordCount& sum = sums[count.column];
        sum.column = count.column;
        sum.values += count.values;
        sum.unknown += count.unknown;
        if (sum.example.empty()) sum.example = count.example;
      }
    }
    return sums;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;  // guarded by mutex_
};

template <typename Transform>
struct Named {
  std::string context;  // for error messages
  std::unique_ptr<Transform> transform;
};

absl::StatusOr<const ColumnSpec*> FindColumn(const FeatureSpec& spec, const std::string& name) {
  const ColumnSpec* const column = spec.Find(name);
  if (column != nullptr) return column;
  std::vector<std::string> known;
  for (const ColumnSpec& other : spec.columns) known.push_back(other.name);
  return absl::NotFoundError(StrCat("no column '", name, "'", DidYouMean(name, known)));
}

// INVALID_ARGUMENT if a name occurs twice.
absl::Status CheckOnce(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) {
        return absl::InvalidArgumentError(StrCat("column '", names[i], "' is requested twice"));
      }
    }
  }
  return absl::OkStatus();
}

class TransformOfSpec final : public FeatureTransform {
 public:
  explicit TransformOfSpec(const FeatureSpec& spec)
      : num_fields_(spec.schema.fields.size()),
        fingerprinted_(num_fields_, false),
        fingerprinted_for_label_(num_fields_, false) {
    for (const formats::Field& field : spec.schema.fields) types_.push_back(field.type);
    if (!spec.label.input.empty()) {
      label_ = std::make_unique<LabelTransform>(spec);
      label_->MarkFingerprints(&fingerprinted_for_label_);
    }
    if (!spec.weight.empty()) {
      weight_ = spec.schema.Find(spec.weight);
      weight_name_ = spec.weight;
    }
  }

  absl::Status AddDense(const FeatureSpec& spec, const std::string& name) {
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* column, FindColumn(spec, name));
    if (column->to_measure) {
      return absl::FailedPreconditionError(
          StrCat("column '", name, "' needs numbers from the training data (normalize: auto, ",
                 "impute: mean or median), which are not known before a training's first pass"));
    }
    std::unique_ptr<DenseTransform> transform =
        GetColumnType(column->kind).MakeDense(spec, *column);
    if (transform == nullptr) {
      return absl::InvalidArgumentError(
          StrCat("column '", name, "' is neither numeric nor an indicator; request ",
                 column->kind == ColumnKind::kEmbedding ? StrCat("the ids of '", column->input, "'")
                                                        : "its ids"));
    }
    transform->MarkFingerprints(&fingerprinted_);
    dense_.push_back({StrCat("column '", name, "'"), std::move(transform)});
    return absl::OkStatus();
  }

  absl::Status AddCategorical(const FeatureSpec& spec, const std::string& name) {
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* column, FindColumn(spec, name));
    if (!column->is_categorical()) {
      return absl::InvalidArgumentError(StrCat("column '", name, "' is not categorical"));
    }
    std::unique_ptr<IdTransform> transform = MakeIdTransform(spec, *column);
    transform->MarkFingerprints(&fingerprinted_);
    ids_.push_back({StrCat("column '", name, "'"), std::move(transform)});
    return absl::OkStatus();
  }

  absl::Status Apply(const formats::Columns& rows, bool with_labels, FeatureBatch* batch,
                     int* bad_row) const override {
    int row = -1;
    std::unique_ptr<Scratch> scratch = scratch_.Get();
    absl::Status status = Fill(rows, with_labels, scratch.get(), batch, &row);
    scratch_.Return(std::move(scratch));
    if (bad_row != nullptr) *bad_row = row;
    return status;
  }

  std::vector<WordCount> CountWords() const override {
    std::vector<WordCount> counts;
    for (auto& [name, count] : scratch_.SumWords()) counts.push_back(std::move(count));
    return counts;
  }

 private:
  absl::Status Fill(const formats::Columns& rows, bool with_labels, Scratch* scratch,
                    FeatureBatch* batch, int* bad_row) const {
    if (rows.columns().size() != num_fields_) {
      return absl::InvalidArgumentError(
          StrCat("rows of ", rows.columns().size(), " fields given to a spec of ", num_fields_));
    }
    batch->rows = rows.rows();
    batch->labels.clear();
    batch->weights.clear();
    Fingerprints(rows, with_labels, scratch);
    if (with_labels) {
      if (label_ == nullptr) {
        return absl::InvalidArgumentError("labels are requested, but the spec has no label");
      }
      MUSTER_RETURN_IF_ERROR(label_->Apply(rows, *scratch, &batch->labels, bad_row));
      if (weight_ >= 0) {
        MUSTER_RETURN_IF_ERROR(
            Annotate(CopyWeights(rows.column(weight_), types_[weight_], &batch->weights, bad_row),
                     StrCat("weight '", weight_name_, "'")));
      }
    }
    batch->dense.resize(dense_.size());
    for (size_t i = 0; i < dense_.size(); ++i) {
      absl::Status status = dense_[i].transform->Apply(rows, scratch, &batch->dense[i], bad_row);
      if (!status.ok()) return Annotate(status, dense_[i].context);
    }
    batch->id_lists.resize(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i) {
      absl::Status status = ids_[i].transform->Apply(rows, scratch, &batch->id_lists[i], bad_row);
      if (!status.ok()) return Annotate(status, ids_[i].context);
    }
    return absl::OkStatus();
  }

  // Each value is fingerprinted once, however many columns use it.
  void Fingerprints(const formats::Columns& rows, bool with_labels, Scratch* scratch) const {
    scratch->fingerprints.resize(num_fields_);
    for (size_t field = 0; field < num_fields_; ++field) {
      if (!fingerprinted_[field] && !(with_labels && fingerprinted_for_label_[field])) continue;
      const formats::Column& column = rows.column(static_cast<int>(field));
      std::vector<uint64_t>& out = scratch->fingerprints[field];
      const size_t count = NumValues(column, types_[field]);
      out.resize(count);
      if (types_[field] == formats::ValueType::kString) {
        for (size_t i = 0; i < count; ++i) out[i] = Fingerprint64(column.strings[i]);
      } else {
        for (size_t i = 0; i < count; ++i) out[i] = Fingerprint64(column.ints[i]);
      }
    }
  }

  size_t num_fields_;
  std::vector<formats::ValueType> types_;  // by field
  std::vector<bool> fingerprinted_;        // by field: whether a column reads the fingerprints
  std::vector<bool> fingerprinted_for_label_;
  std::vector<Named<DenseTransform>> dense_;
  std::vector<Named<IdTransform>> ids_;
  std::unique_ptr<LabelTransform> label_;  // null: no labels
  int weight_ = -1;                        // index of a field; -1: none
  std::string weight_name_;
  mutable ScratchPool scratch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FeatureTransform>> FeatureTransform::Create(
    const FeatureSpec& spec, const FeatureRequest& request) {
  MUSTER_RETURN_IF_ERROR(Validate(spec));
  MUSTER_RETURN_IF_ERROR(CheckOnce(request.dense));
  MUSTER_RETURN_IF_ERROR(CheckOnce(request.categorical));
  auto transform = std::make_unique<TransformOfSpec>(spec);
  for (const std::string& name : request.dense) {
    MUSTER_RETURN_IF_ERROR(transform->AddDense(spec, name));
  }
  for (const std::string& name : request.categorical) {
    MUSTER_RETURN_IF_ERROR(transform->AddCategorical(spec, name));
  }
  return transform;
}

}  // namespace muster::features
