// Weighted columns.
#include <algorithm>

#include "muster/features/dense.h"
#include "muster/features/ids.h"

namespace muster::features {
namespace {

// TensorFlow's WeightedCategoricalColumn: the ids of a column and a weight for each of its values.
class WeightedTransform final : public IdTransform {
 public:
  WeightedTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : ids_(MakeIdTransform(spec, *spec.Find(column.input))),
        weights_(column.weights),
        field_(spec.schema.Find(column.weights)),
        type_(spec.schema.fields[field_].type) {}

  void MarkFingerprints(std::vector<bool>* fields) const override {
    ids_->MarkFingerprints(fields);
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int* bad_row) const override {
    MUSTER_RETURN_IF_ERROR(ids_->Apply(rows, scratch, ids, bad_row));
    const formats::Column& input = rows.column(field_);
    if (input.offsets != ids->offsets) return CountsDiffer(input.offsets, ids->offsets, bad_row);
    ids->weights.resize(ids->ids.size());
    if (type_ == formats::ValueType::kInt) {
      std::transform(input.ints.begin(), input.ints.end(), ids->weights.begin(),
                     [](int64_t value) { return static_cast<float>(value); });
      return absl::OkStatus();
    }
    std::copy(input.floats.begin(), input.floats.end(), ids->weights.begin());
    const size_t bad = FirstNotFinite(ids->weights.data(), ids->weights.size());
    if (bad == ids->weights.size()) return absl::OkStatus();
    *bad_row = RowOfValue(input, bad);
    return absl::InvalidArgumentError(
        StrCat("the weight ", ids->weights[bad], " is not finite; mend or leave out the row"));
  }

 private:
  absl::Status CountsDiffer(const std::vector<uint32_t>& weights, const std::vector<uint32_t>& ids,
                            int* bad_row) const {
    const auto [weight, id] = std::mismatch(weights.begin(), weights.end(), ids.begin());
    *bad_row = static_cast<int>(weight - weights.begin()) - 1;
    return absl::InvalidArgumentError(StrCat("'", weights_, "' has ", *weight - *(weight - 1),
                                             " weights for ", *id - *(id - 1),
                                             " values; each value needs one"));
  }

  std::unique_ptr<IdTransform> ids_;
  std::string weights_;
  int field_;
  formats::ValueType type_;
};

}  // namespace

std::unique_ptr<IdTransform> MakeWeighted(const FeatureSpec& spec, const ColumnSpec& column) {
  return std::make_unique<WeightedTransform>(spec, column);
}

}  // namespace muster::features
