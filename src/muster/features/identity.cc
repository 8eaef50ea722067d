// Identity columns.
#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

// Does what TensorFlow's IdentityCategoricalColumn does.
class IdentityLookup final : public IdLookup {
 public:
  IdentityLookup(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        buckets_(column.buckets),
        default_id_(column.default_id) {}

  absl::Status Lookup(const formats::Columns& rows, const Scratch&, size_t first, int count,
                      int64_t* ids, size_t* bad_value) const override {
    const int64_t* const values = rows.column(field()).ints.data() + first;
    for (int i = 0; i < count; ++i) {
      const int64_t value = values[i];
      if (value == -1 && !list()) {
        ids[i] = kMissing;
      } else if (default_id_ >= 0) {
        ids[i] = value >= 0 && value < buckets_ ? value : default_id_;
      } else if (value < buckets_) {
        ids[i] = value;
      } else {
        *bad_value = first + i;
        return absl::InvalidArgumentError(StrCat("the value ", value, " is not below ", buckets_,
                                                 ", the number of ids; mend the row, raise "
                                                 "'buckets' or give a default id"));
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t buckets_;
  int64_t default_id_;
};

class IdentityColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kIdentity; }
  std::string_view name() const override { return "identity"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"identity", "buckets", "default"});
    column->input = node.At("identity").AsString();
    column->buckets = node.At("buckets").AsInt(1, kMaxTableRows);
    column->default_id = node.Int("default", -1, -1, kMaxTableRows);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "identity", column.input);
    formats::EmitNumber(out, "buckets", column.buckets);
    if (column.default_id >= 0) formats::EmitNumber(out, "default", column.default_id);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, check.Input());
    if (field->type != formats::ValueType::kInt) {
      return Invalid("an identity column needs an int input; '", field->name, "' is a ",
                     formats::ValueTypeName(field->type));
    }
    MUSTER_RETURN_IF_ERROR(check.Buckets());
    return check.DefaultId();
  }
  std::string FindCrossFault(const ColumnSpec& /*column*/) const override { return ""; }

  std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema,
                                       const ColumnSpec& column) const override {
    return std::make_unique<IdentityLookup>(schema, column);
  }
};

}  // namespace

const ColumnType& GetIdentityColumn() {
  static const IdentityColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
