// Weighted columns.
#include <algorithm>

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

// TensorFlow's WeightedCategoricalColumn: the ids of a column, and a weight for each of its values.
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
    *bad_row = FindRow(input, bad);
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

class WeightedColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kWeighted; }
  std::string_view name() const override { return "weighted"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"weighted", "weights"});
    column->input = node.At("weighted").AsString();
    column->weights = node.At("weights").AsString();
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "weighted", column.input);
    formats::EmitText(out, "weights", column.weights);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    const FeatureSpec& spec = check.spec();
    MUSTER_ASSIGN_OR_RETURN(const ColumnSpec* input, check.Categorical());
    if (input->kind == ColumnKind::kWeighted) {
      return Invalid("'", input->name, "' is already weighted");
    }
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* weights, check.FieldNamed(column.weights));
    if (weights->type == formats::ValueType::kString) {
      return Invalid("weights are ints or floats; '", weights->name, "' is a string");
    }
    const bool lists = spec.HasLists(*input);
    if (lists == weights->list) return absl::OkStatus();
    return Invalid("'", input->name, "' has ", lists ? "a list" : "one value",
                   " per row, its weights '", weights->name, "' ", lists ? "one value" : "a list");
  }
  std::string FindCrossFault(const ColumnSpec& column) const override {
    return StrCat("is weighted, and a cross has no weights; give its column '", column.input, "'");
  }

  int64_t NumIds(const FeatureSpec& spec, const ColumnSpec& column) const override {
    const ColumnSpec* const input = spec.Find(column.input);
    return input == nullptr || input->kind == ColumnKind::kWeighted ? 0 : spec.NumIds(*input);
  }
  const GrowthSpec* GetGrowth(const FeatureSpec& spec, const ColumnSpec& column) const override {
    const ColumnSpec* const input = spec.Find(column.input);
    return input == nullptr || input->kind == ColumnKind::kWeighted ? nullptr
                                                                    : spec.GetGrowth(*input);
  }
  void CollectUses(const FeatureSpec& spec, const ColumnSpec& column,
                   std::set<std::string>* used_columns,
                   std::set<std::string>* used_fields) const override {
    used_fields->insert(column.weights);
    spec.CollectUses(column.input, used_columns, used_fields);
  }

  std::unique_ptr<IdTransform> MakeIds(const FeatureSpec& spec,
                                       const ColumnSpec& column) const override {
    return std::make_unique<WeightedTransform>(spec, column);
  }
};

}  // namespace

const ColumnType& GetWeightedColumn() {
  static const WeightedColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
