// Indicator columns.
#include "muster/features/dense.h"

namespace muster::features {
namespace {

// TensorFlow's IndicatorColumn: one_hot of every id, or its weight there, summed.
class IndicatorTransform final : public DenseTransform {
 public:
  IndicatorTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : ids_(MakeIdTransform(spec, *spec.Find(column.input))), width_(spec.Width(column)) {}

  void MarkFingerprints(std::vector<bool>* fields) const override {
    ids_->MarkFingerprints(fields);
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, DenseColumn* dense,
                     int* bad_row) const override {
    IdList& ids = scratch->ids;
    MUSTER_RETURN_IF_ERROR(ids_->Apply(rows, scratch, &ids, bad_row));
    dense->width = width_;
    dense->values.assign(static_cast<size_t>(rows.rows()) * width_, 0.0F);
    float* counts = dense->values.data();
    for (int row = 0; row < rows.rows(); ++row, counts += width_) {
      const size_t end = ids.end(row);
      for (size_t i = ids.begin(row); i < end; ++i) {
        if (ids.ids[i] >= 0) counts[ids.ids[i]] += ids.weight(i);
      }
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<IdTransform> ids_;
  int width_;
};

}  // namespace

std::unique_ptr<DenseTransform> MakeIndicator(const FeatureSpec& spec, const ColumnSpec& column) {
  return std::make_unique<IndicatorTransform>(spec, column);
}

}  // namespace muster::features
