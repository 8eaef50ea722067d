// Indicator columns.
#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

constexpr int64_t kMaxIndicator = 1 << 20;  // the most floats per row

// TensorFlow's IndicatorColumn: the sum of the one-hot vectors of all ids, each times the weight of
// its id.
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

class IndicatorColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kIndicator; }
  std::string_view name() const override { return "indicator"; }
  bool is_categorical() const override { return false; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"indicator"});
    column->input = node.At("indicator").AsString();
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "indicator", column.input);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const FeatureSpec& spec = check.spec();
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, check.Categorical());
    if (spec.GetGrowth(*input) != nullptr) {
      return Invalid("the number of keys of '", input->name,
                     "' is not known; use an embedding of it, or '", input->name,
                     "' itself in a linear model");
    }
    const int64_t ids = spec.NumIds(*input);
    if (ids <= kMaxIndicator) return absl::OkStatus();
    return Invalid("would be ", ids, " floats per row; at most ", kMaxIndicator,
                   " are possible (use '", input->name, "' itself or an embedding of it)");
  }

  int Width(const FeatureSpec& spec, const ColumnSpec& column) const override {
    return static_cast<int>(spec.NumIds(*spec.Find(column.input)));
  }
  void CollectUses(const FeatureSpec& spec, const ColumnSpec& column,
                   std::set<std::string>* used_columns,
                   std::set<std::string>* used_fields) const override {
    spec.CollectUses(column.input, used_columns, used_fields);
  }

  std::unique_ptr<DenseTransform> MakeDense(const FeatureSpec& spec,
                                            const ColumnSpec& column) const override {
    return std::make_unique<IndicatorTransform>(spec, column);
  }
};

}  // namespace

const ColumnType& GetIndicatorColumn() {
  static const IndicatorColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
