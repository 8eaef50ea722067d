// Hash columns.
#include "muster/features/column_type.h"
#include "muster/features/remainder.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

// TensorFlow's StringToHashBucketFast of the value, or of AsString of a number.
class HashLookup final : public IdLookup {
 public:
  HashLookup(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        buckets_(static_cast<uint64_t>(column.buckets)) {}

  bool needs_fingerprints() const override { return true; }

  absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    const uint64_t* const fingerprints = scratch.fingerprints[field()].data() + first;
    for (int i = 0; i < count; ++i) ids[i] = static_cast<int64_t>(buckets_.Of(fingerprints[i]));
    if (list()) return absl::OkStatus();
    const formats::Column& column = rows.column(field());
    if (type() == formats::ValueType::kString) {
      const std::string_view* const values = column.strings.data() + first;
      for (int i = 0; i < count; ++i) ids[i] = values[i].empty() ? kMissing : ids[i];
    } else {
      const int64_t* const values = column.ints.data() + first;
      for (int i = 0; i < count; ++i) ids[i] = values[i] == -1 ? kMissing : ids[i];
    }
    return absl::OkStatus();
  }

 private:
  Remainder buckets_;
};

class HashColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kHash; }
  std::string_view name() const override { return "hash"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"hash", "buckets"});
    column->input = node.At("hash").AsString();
    column->buckets = node.At("buckets").AsInt(1, kMaxTableRows);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "hash", column.input);
    formats::EmitNumber(out, "buckets", column.buckets);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    MUSTER_RETURN_IF_ERROR(check.IntOrString("a hash column").status());
    return check.Buckets();
  }
  std::string FindCrossFault(const ColumnSpec& column) const override {
    return StrCat("is a hash column; give its field '", column.input,
                  "' (hashing twice makes more collisions)");
  }

  std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema,
                                       const ColumnSpec& column) const override {
    return std::make_unique<HashLookup>(schema, column);
  }
};

}  // namespace

const ColumnType& GetHashColumn() {
  static const HashColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
