// Hash and identity columns.
#include "muster/features/ids.h"
#include "muster/features/remainder.h"

namespace muster::features {
namespace {

// TensorFlow's StringToHashBucketFast over the value or AsString of it.
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

// TensorFlow's IdentityCategoricalColumn.
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

}  // namespace

std::unique_ptr<IdLookup> MakeHashLookup(const formats::Schema& schema, const ColumnSpec& column) {
  return std::make_unique<HashLookup>(schema, column);
}

std::unique_ptr<IdLookup> MakeIdentityLookup(const formats::Schema& schema,
                                             const ColumnSpec& column) {
  return std::make_unique<IdentityLookup>(schema, column);
}

}  // namespace muster::features
