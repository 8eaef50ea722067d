// Crossed columns: TensorFlow's SparseCross kernel with hashed output.
#include <algorithm>
#include <array>

#include "muster/features/column_type.h"
#include "muster/features/fingerprint.h"
#include "muster/features/remainder.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

constexpr uint64_t kDefaultHashKey = 0xDECAFCAFFE;
constexpr size_t kMaxCombinations = 1 << 20;  // the most for one row

// One key: a field by its raw values (fingerprints of strings, ints as they are), or a column by
// its ids, where the -1 of an unknown word is a value like any other, but a missing value is no
// value.
class Key {
 public:
  Key(const FeatureSpec& spec, const std::string& name) : field_(spec.schema.Find(name)) {
    if (field_ < 0) {
      ids_ = MakeLookup(spec.schema, *spec.Find(name));
      field_ = ids_->field();
    }
    type_ = spec.schema.fields[field_].type;
    list_ = spec.schema.fields[field_].list;
  }

  int field() const { return field_; }
  bool list() const { return list_; }
  // Whether TensorFlow represents it as a SparseTensor: all keys except raw values of scalar
  // fields.
  bool sparse() const { return list_ || ids_ != nullptr; }
  bool has_ids() const { return ids_ != nullptr; }
  bool needs_fingerprints() const {
    return ids_ != nullptr ? ids_->needs_fingerprints() : type_ == formats::ValueType::kString;
  }

  absl::Status CheckRows(const formats::Columns& rows, int* bad_row) const {
    return ids_ == nullptr ? absl::OkStatus() : ids_->CheckRows(rows, bad_row);
  }

  // Returns the field's values [first, first + count) as they enter the chain. kMissing marks a
  // missing value only if has_ids().
  absl::Status Values(const formats::Columns& rows, const Scratch& scratch, size_t first, int count,
                      int64_t* values, size_t* bad_value) const {
    if (ids_ != nullptr) return ids_->Lookup(rows, scratch, first, count, values, bad_value);
    if (type_ == formats::ValueType::kString) {
      const uint64_t* const from = scratch.fingerprints[field_].data() + first;
      std::copy(from, from + count, values);
    } else {
      const int64_t* const from = rows.column(field_).ints.data() + first;
      std::copy(from, from + count, values);
    }
    return absl::OkStatus();
  }

 private:
  int field_;
  formats::ValueType type_;
  bool list_;
  std::unique_ptr<IdLookup> ids_;  // null: raw values
};

class CrossTransform final : public IdTransform {
 public:
  CrossTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : buckets_(static_cast<uint64_t>(column.buckets)),
        hash_key_(column.hash_key != 0 ? column.hash_key : kDefaultHashKey) {
    for (const std::string& name : column.keys) keys_.emplace_back(spec, name);
    // SparseCross takes its sparse inputs before its dense ones.
    std::stable_partition(keys_.begin(), keys_.end(), [](const Key& key) { return key.sparse(); });
    has_lists_ = std::any_of(keys_.begin(), keys_.end(), [](const Key& key) { return key.list(); });
  }

  void MarkFingerprints(std::vector<bool>* fields) const override {
    for (const Key& key : keys_) {
      if (key.needs_fingerprints()) (*fields)[key.field()] = true;
    }
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int* bad_row) const override {
    ids->weights.clear();
    for (const Key& key : keys_) MUSTER_RETURN_IF_ERROR(key.CheckRows(rows, bad_row));
    return has_lists_ ? Lists(rows, scratch, ids, bad_row) : Scalars(rows, *scratch, ids, bad_row);
  }

 private:
  // If each key has one value: the chains of a block of rows grow key by key.
  absl::Status Scalars(const formats::Columns& rows, const Scratch& scratch, IdList* ids,
                       int* bad_row) const {
    ids->offsets.clear();
    ids->ids.resize(rows.rows());
    std::array<uint64_t, kBlock> chains;
    std::array<int64_t, kBlock> values;
    std::array<bool, kBlock> missing;
    for (int first = 0; first < rows.rows(); first += kBlock) {
      const int count = std::min(kBlock, rows.rows() - first);
      chains.fill(hash_key_);
      missing.fill(false);
      for (const Key& key : keys_) {
        MUSTER_RETURN_IF_ERROR(KeyValues(key, rows, scratch, first, count, values.data(), bad_row));
        for (int i = 0; i < count; ++i) {
          chains[i] = FingerprintCat64(chains[i], static_cast<uint64_t>(values[i]));
        }
        if (!key.has_ids()) continue;
        for (int i = 0; i < count; ++i) missing[i] |= values[i] == kMissing;
      }
      int32_t* const out = ids->ids.data() + first;
      for (int i = 0; i < count; ++i) {
        out[i] = missing[i] ? -1 : static_cast<int32_t>(buckets_.Of(chains[i]));
      }
    }
    return absl::OkStatus();
  }

  // Makes every combination of a row's values; the last key changes fastest.
  absl::Status Lists(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int* bad_row) const {
    ids->ids.clear();
    ids->offsets.assign(1, 0);
    std::vector<uint64_t>& chains = scratch->chains;
    std::vector<uint64_t>& longer = scratch->longer_chains;
    std::vector<int64_t>& values = scratch->values;
    for (int row = 0; row < rows.rows(); ++row) {
      chains.assign(1, hash_key_);
      for (const Key& key : keys_) {
        MUSTER_RETURN_IF_ERROR(RowValues(key, rows, *scratch, row, &values, bad_row));
        if (values.size() * chains.size() > kMaxCombinations) {
          *bad_row = row;
          return absl::InvalidArgumentError(
              StrCat("its lists have more than ", kMaxCombinations, " combinations"));
        }
        longer.clear();
        for (const uint64_t chain : chains) {
          for (const int64_t value : values) {
            longer.push_back(FingerprintCat64(chain, static_cast<uint64_t>(value)));
          }
        }
        chains.swap(longer);
      }
      for (const uint64_t chain : chains) {
        ids->ids.push_back(static_cast<int32_t>(buckets_.Of(chain)));
      }
      if (ids->ids.size() > std::numeric_limits<uint32_t>::max()) {
        return absl::ResourceExhaustedError(
            StrCat("the batch's lists have too many combinations by row ", row));
      }
      ids->offsets.push_back(static_cast<uint32_t>(ids->ids.size()));
    }
    return absl::OkStatus();
  }

  // Returns the values that a key has in one row, without missing ones.
  absl::Status RowValues(const Key& key, const formats::Columns& rows, const Scratch& scratch,
                         int row, std::vector<int64_t>* values, int* bad_row) const {
    const std::vector<uint32_t>& offsets = rows.column(key.field()).offsets;
    const size_t begin = key.list() ? offsets[row] : row;
    const size_t end = key.list() ? offsets[row + 1] : row + 1;
    values->resize(end - begin);
    for (size_t first = begin; first < end; first += kBlock) {
      const int count = static_cast<int>(std::min<size_t>(kBlock, end - first));
      MUSTER_RETURN_IF_ERROR(
          KeyValues(key, rows, scratch, first, count, values->data() + (first - begin), bad_row));
    }
    if (key.has_ids()) std::erase(*values, kMissing);
    return absl::OkStatus();
  }

  absl::Status KeyValues(const Key& key, const formats::Columns& rows, const Scratch& scratch,
                         size_t first, int count, int64_t* values, int* bad_row) const {
    size_t bad_value = 0;
    absl::Status status = key.Values(rows, scratch, first, count, values, &bad_value);
    if (status.ok()) return status;
    *bad_row = FindRow(rows.column(key.field()), bad_value);
    return status;
  }

  Remainder buckets_;
  uint64_t hash_key_;
  std::vector<Key> keys_;
  bool has_lists_ = false;
};

class CrossColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kCross; }
  std::string_view name() const override { return "cross"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"cross", "buckets", "hash_key"});
    column->keys = node.At("cross").AsStrings();
    column->buckets = node.At("buckets").AsInt(1, kMaxTableRows);
    if (node.Has("hash_key")) column->hash_key = node.At("hash_key").AsSeed();
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitTexts(out, "cross", column.keys);
    formats::EmitNumber(out, "buckets", column.buckets);
    formats::EmitNumber(out, "hash_key", column.hash_key);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    if (column.keys.size() < 2) return Invalid("a cross needs at least two keys");
    for (const std::string& key : column.keys) {
      MUSTER_RETURN_IF_ERROR(Annotate(CheckKey(check, key), StrCat("key '", key, "'")));
    }
    return check.Buckets();
  }
  std::string FindCrossFault(const ColumnSpec& /*column*/) const override {
    return "is a cross; give its keys instead";
  }

  void CollectUses(const FeatureSpec& spec, const ColumnSpec& column,
                   std::set<std::string>* used_columns,
                   std::set<std::string>* used_fields) const override {
    for (const std::string& each : column.keys) {
      if (spec.schema.Find(each) >= 0) {
        used_fields->insert(each);
      } else {
        spec.CollectUses(each, used_columns, used_fields);
      }
    }
  }

  std::unique_ptr<IdTransform> MakeIds(const FeatureSpec& spec,
                                       const ColumnSpec& column) const override {
    return std::make_unique<CrossTransform>(spec, column);
  }

 private:
  static absl::Status CheckKey(const ColumnCheck& check, const std::string& key) {
    const FeatureSpec& spec = check.spec();
    const ColumnSpec* const column = spec.Find(key);
    if (const int index = spec.schema.Find(key); index >= 0) {
      if (column != nullptr && column->kind == ColumnKind::kBucketized) {
        return Invalid("is both a field and a bucketized column; give the column another name");
      }
      if (spec.schema.fields[index].type != formats::ValueType::kFloat) return absl::OkStatus();
      return Invalid("is a float; bucketize it and give the name of that column");
    }
    if (column == nullptr) {
      std::vector<std::string> known;
      for (const formats::Field& field : spec.schema.fields) known.push_back(field.name);
      for (const ColumnSpec& other : spec.columns) {
        if (other.is_categorical() && other.name != check.column().name)
          known.push_back(other.name);
      }
      return Invalid("is neither a field nor a column", DidYouMean(key, known));
    }
    const std::string fault = GetColumnType(column->kind).FindCrossFault(*column);
    if (fault.empty()) return absl::OkStatus();
    return Invalid(fault);
  }
};

}  // namespace

const ColumnType& GetCrossColumn() {
  static const CrossColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
