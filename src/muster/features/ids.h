// From values to ids: the parts that categorical columns are made of. Internal to this layer.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/formats/columns.h"

namespace muster::features {

// Room that one Apply() works in; reused from batch to batch.
struct Scratch {
  // By field of the schema: Fingerprint64 of every value (ints printed), of the fields that need
  // it.
  std::vector<std::vector<uint64_t>> fingerprints;
  IdList ids;                 // of an indicator's categorical column
  std::vector<float> floats;  // of the steps of a sequence
  // Of a row of a cross with lists: the combinations of the keys so far and of the next one too,
  // and the values of that key.
  std::vector<uint64_t> chains;
  std::vector<uint64_t> longer_chains;
  std::vector<int64_t> values;
};

// A value that is there in no TensorFlow SparseTensor: '' or -1 in a scalar field.
inline constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();
// Values are looked up this many at a time, so that what lies between two loops stays in cache.
inline constexpr int kBlock = 256;

// Ids of the values of one field, one an element; what column kinds over one field differ in.
// Immutable.
class IdLookup {
 public:
  IdLookup(const formats::Schema& schema, int field)
      : field_(field), type_(schema.fields[field].type), list_(schema.fields[field].list) {}
  virtual ~IdLookup() = default;

  int field() const { return field_; }
  formats::ValueType type() const { return type_; }
  // In a list every value counts; in a scalar field '' and -1 are kMissing.
  bool list() const { return list_; }
  virtual bool needs_fingerprints() const { return false; }
  // What is asked of rows as a whole: INVALID_ARGUMENT names the row, *bad_row is it.
  virtual absl::Status CheckRows(const formats::Columns&, int*) const { return absl::OkStatus(); }

  // ids[i] for the field's value number first + i, i < count <= kBlock: an id, kMissing, or another
  // negative number for a value that has no id (-1, an identity's own value).
  // INVALID_ARGUMENT for a value that must not be; *bad_value is its number.
  virtual absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first,
                              int count, int64_t* ids, size_t* bad_value) const = 0;

 private:
  int field_;
  formats::ValueType type_;
  bool list_;
};

// The lookup of a bucketized, vocabulary, identity or hash column of a valid spec.
std::unique_ptr<IdLookup> MakeBucketizedLookup(const formats::Schema& schema,
                                               const ColumnSpec& column);
std::unique_ptr<IdLookup> MakeVocabularyLookup(const formats::Schema& schema,
                                               const ColumnSpec& column);
std::unique_ptr<IdLookup> MakeIdentityLookup(const formats::Schema& schema,
                                             const ColumnSpec& column);
std::unique_ptr<IdLookup> MakeHashLookup(const formats::Schema& schema, const ColumnSpec& column);
std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema, const ColumnSpec& column);

// The ids of one categorical column. Immutable.
class IdTransform {
 public:
  virtual ~IdTransform() = default;
  // Marks the fields whose fingerprints Apply() reads.
  virtual void MarkFingerprints(std::vector<bool>* fields) const = 0;
  // Replaces *ids. Errors as FeatureTransform::Apply, without the column's name.
  virtual absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                             int* bad_row) const = 0;
};

// `column` is a categorical column of the valid `spec`.
std::unique_ptr<IdTransform> MakeIdTransform(const FeatureSpec& spec, const ColumnSpec& column);
std::unique_ptr<IdTransform> MakeCross(const FeatureSpec& spec, const ColumnSpec& column);
std::unique_ptr<IdTransform> MakeKeys(const FeatureSpec& spec, const ColumnSpec& column);
std::unique_ptr<IdTransform> MakeWeighted(const FeatureSpec& spec, const ColumnSpec& column);

// INVALID_ARGUMENT for the first row of a list that has not `shape` values.
absl::Status CheckLengths(const formats::Column& column, int shape, int* bad_row);

// The row that value number `value` of a field is in.
int RowOfValue(const formats::Column& column, size_t value);
// How many values the field has in all rows.
size_t NumValues(const formats::Column& column, formats::ValueType type);
// A value as an error message shows it: escaped, in quotes, cut when long.
std::string Shown(std::string_view value);

}  // namespace muster::features
