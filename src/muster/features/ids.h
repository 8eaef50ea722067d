// Converts values to ids: the building blocks of categorical columns. Internal to this layer.
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

// Working memory of one Apply(); reused from batch to batch.
struct Scratch {
  // By field of the schema: Fingerprint64 of every value (ints printed), for the fields that need
  // it.
  std::vector<std::vector<uint64_t>> fingerprints;
  IdList ids;                 // of an indicator's categorical column
  std::vector<float> floats;  // of the steps of a sequence
  // For a row of a cross with lists: the combinations of the keys so far, those with the next key,
  // and the values of that key.
  std::vector<uint64_t> chains;
  std::vector<uint64_t> longer_chains;
  std::vector<int64_t> values;
};

// A value that a TensorFlow SparseTensor does not contain: '' or -1 in a scalar field.
inline constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();
// Values are looked up this many at a time, so that data passed between two loops stays in cache.
inline constexpr int kBlock = 256;

// The ids of the values of one field, one per element; the part in which the column kinds over one
// field differ. Immutable.
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
  // Checks rows as a whole: INVALID_ARGUMENT; *bad_row is that row.
  virtual absl::Status CheckRows(const formats::Columns&, int*) const { return absl::OkStatus(); }

  // ids[i] for the field's value number first + i, i < count <= kBlock: an id, kMissing, or another
  // negative number for a value that has no id (-1, an identity's own value). INVALID_ARGUMENT for
  // a value that is not allowed; *bad_value is its number.
  virtual absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first,
                              int count, int64_t* ids, size_t* bad_value) const = 0;

 private:
  int field_;
  formats::ValueType type_;
  bool list_;
};

// The lookup of a column over one field (ColumnType::MakeLookup); null for other columns.
std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema, const ColumnSpec& column);
// Of a vocabulary column; labels have vocabularies too.
std::unique_ptr<IdLookup> MakeVocabularyLookup(const formats::Schema& schema,
                                               const ColumnSpec& column);

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

// INVALID_ARGUMENT for the first row of a list that does not have `shape` values.
absl::Status CheckLengths(const formats::Column& column, int shape, int* bad_row);

// The row that contains value number `value` of a field.
int RowOfValue(const formats::Column& column, size_t value);
// The number of the field's values in all rows.
size_t NumValues(const formats::Column& column, formats::ValueType type);
// A value as an error message shows it: escaped, in quotes, cut when long.
std::string Shown(std::string_view value);

}  // namespace muster::features
