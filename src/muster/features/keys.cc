// Keys columns.
#include <limits>

#include "muster/features/column_type.h"
#include "muster/features/remainder.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 53;

// TensorFlow's StringToHashBucketFast with this many buckets keeps nearly the whole fingerprint.
constexpr auto kStringKeys = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// The key of an int is the int itself.
class KeysTransform final : public IdTransform {
 public:
  KeysTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : field_(spec.schema.Find(column.input)),
        is_text_(spec.schema.fields[field_].type == formats::ValueType::kString),
        list_(spec.schema.fields[field_].list),
        buckets_(kStringKeys) {}

  void MarkFingerprints(std::vector<bool>* fields) const override {
    if (is_text_) (*fields)[field_] = true;
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int*) const override {
    const formats::Column& column = rows.column(field_);
    ids->weights.clear();
    ids->offsets = column.offsets;
    if (is_text_) {
      const std::vector<uint64_t>& fingerprints = scratch->fingerprints[field_];
      ids->keys.resize(fingerprints.size());
      for (size_t i = 0; i < fingerprints.size(); ++i) {
        ids->keys[i] = static_cast<int64_t>(buckets_.Of(fingerprints[i]));
      }
    } else {
      ids->keys = column.ints;
    }
    ids->ids.assign(ids->keys.size(), 0);
    if (list_) return absl::OkStatus();
    for (size_t i = 0; i < ids->ids.size(); ++i) {
      if (is_text_ ? column.strings[i].empty() : column.ints[i] == -1) ids->ids[i] = -1;
    }
    return absl::OkStatus();
  }

 private:
  const int field_;
  const bool is_text_, list_;
  const Remainder buckets_;
};

class KeysColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kKeys; }
  std::string_view name() const override { return "keys"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"keys", "admit_after", "expire_after", "capacity"});
    column->input = node.At("keys").AsString();
    column->growth.admit_after = node.Int("admit_after", 1, 1, kMaxSteps);
    column->growth.expire_after = node.Int("expire_after", 0, 0, kMaxSteps);
    column->growth.capacity = node.Int("capacity", 0, 0, kMaxTableRows);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "keys", column.input);
    formats::EmitNumber(out, "admit_after", column.growth.admit_after);
    formats::EmitNumber(out, "expire_after", column.growth.expire_after);
    formats::EmitNumber(out, "capacity", column.growth.capacity);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    MUSTER_RETURN_IF_ERROR(check.IntOrString("a keys column").status());
    const GrowthSpec& growth = column.growth;
    if (growth.admit_after < 1) {
      return Invalid("admit_after is ", growth.admit_after, "; it must be 1 (at once) or more");
    }
    if (growth.expire_after < 0) {
      return Invalid("expire_after is ", growth.expire_after, "; it must be 0 (never) or more");
    }
    if (growth.capacity >= 0 && growth.capacity <= kMaxTableRows) return absl::OkStatus();
    return Invalid("capacity is ", growth.capacity, "; it must be in [0, ", kMaxTableRows,
                   "], 0 for no limit");
  }
  std::string FindCrossFault(const ColumnSpec& column) const override {
    return StrCat("is a keys column; give its field '", column.input, "'");
  }

  const GrowthSpec* GetGrowth(const FeatureSpec& /*spec*/,
                              const ColumnSpec& column) const override {
    return &column.growth;
  }

  std::unique_ptr<IdTransform> MakeIds(const FeatureSpec& spec,
                                       const ColumnSpec& column) const override {
    return std::make_unique<KeysTransform>(spec, column);
  }
};

}  // namespace

const ColumnType& GetKeysColumn() {
  static const KeysColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
