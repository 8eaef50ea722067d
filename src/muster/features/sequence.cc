// Sequences of numbers, pooled over their steps.
#include <algorithm>
#include <cmath>
#include <span>

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

// TensorFlow's SequenceNumericColumn (each value scaled, steps of `shape` values), whose steps are
// then pooled like those of a sequence of embeddings (ColumnSpec::pooling).
class SequenceTransform final : public DenseTransform {
 public:
  SequenceTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : normalizer_(spec.schema, column),
        shape_(static_cast<size_t>(column.shape)),
        pooling_(column.pooling) {}

  void MarkFingerprints(std::vector<bool>*) const override {}

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, DenseColumn* dense,
                     int* bad_row) const override {
    MUSTER_RETURN_IF_ERROR(normalizer_.Apply(rows, &scratch->floats, bad_row));
    const std::vector<uint32_t>& offsets = rows.column(normalizer_.field()).offsets;
    dense->width = static_cast<int>(shape_);
    dense->values.assign(static_cast<size_t>(rows.rows()) * shape_, 0.0F);
    float* pooled = dense->values.data();
    for (size_t row = 0; row + 1 < offsets.size(); ++row, pooled += shape_) {
      const size_t count = offsets[row + 1] - offsets[row];
      if (count % shape_ != 0) {
        *bad_row = static_cast<int>(row);
        return absl::InvalidArgumentError(StrCat(
            "it has ", count, " values, which are not whole steps of ", shape_, "; mend the row"));
      }
      if (count > 0) Pool(std::span(scratch->floats).subspan(offsets[row], count), pooled);
    }
    return absl::OkStatus();
  }

 private:
  // For at least one step; `pooled` is zeros on entry.
  void Pool(std::span<const float> values, float* pooled) const {
    const std::span<const float> last = values.last(shape_);
    if (pooling_ == Pooling::kLast || pooling_ == Pooling::kMax) {
      std::copy(last.begin(), last.end(), pooled);
      if (pooling_ == Pooling::kLast) return;
    }
    for (size_t step = 0; step < values.size(); step += shape_) {
      for (size_t i = 0; i < shape_; ++i) {
        const float value = values[step + i];
        pooled[i] = pooling_ == Pooling::kMax ? std::max(pooled[i], value) : pooled[i] + value;
      }
    }
    const size_t count = values.size() / shape_;
    const auto steps = static_cast<float>(count);
    for (size_t i = 0; i < shape_; ++i) {
      if (pooling_ == Pooling::kMean) pooled[i] /= steps;
      if (pooling_ == Pooling::kSqrtN) pooled[i] /= std::sqrt(steps);
    }
  }

  Normalizer normalizer_;
  size_t shape_;
  Pooling pooling_;
};

class SequenceNumericColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kSequenceNumeric; }
  std::string_view name() const override { return "sequence_numeric"; }
  bool is_categorical() const override { return false; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys(
        {"sequence_numeric", "pooling", "shape", "log1p", "mean", "stddev", "normalize", "clip"});
    column->input = node.At("sequence_numeric").AsString();
    column->pooling = ParsePooling(node.At("pooling"));
    ParseScale(node, column);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "sequence_numeric", column.input);
    PrintPooling(column.pooling, out);
    PrintScale(column, out);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, check.Number("a sequence"));
    if (!field->list) return Invalid("a sequence needs a list; '", field->name, "' is not one");
    if (column.pooling == Pooling::kNone) return Invalid("needs a pooling");
    MUSTER_RETURN_IF_ERROR(check.Shape());
    return check.Scale();
  }

  std::unique_ptr<DenseTransform> MakeDense(const FeatureSpec& spec,
                                            const ColumnSpec& column) const override {
    return std::make_unique<SequenceTransform>(spec, column);
  }
};

}  // namespace

const ColumnType& GetSequenceNumericColumn() {
  static const SequenceNumericColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
