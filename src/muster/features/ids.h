// Converts values to ids: the building blocks of categorical columns. Internal to this layer.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/coverage.h"
#include "muster/formats/columns.h"

namespace muster::features {

class IdLookup;

// The working memory of one Apply(), reused from batch to batch.
struct Scratch {
  // By field of the schema: Fingerprint64 of every value (ints printed), for the fields that need
  // it.
  std::vector<std::vector<uint64_t>> fingerprints;
  IdList ids;                 // for the categorical column of an indicator
  std::vector<float> floats;  // for the steps of a sequence
  // For one row of a cross with lists: the combinations of the keys so far, the combinations with
  // the next key, and the values of that key.
  std::vector<uint64_t> chains;
  std::vector<uint64_t> longer_chains;
  std::vector<int64_t> values;
  // Lookups count in it, also where the rest is only read.
  mutable absl::flat_hash_map<const IdLookup*, WordCount> words;
};

// A value that a TensorFlow SparseTensor does not contain: '' or -1 in a scalar field.
inline constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();
// So many values are looked up at a time, so that data passed between two loops stays in the cache.
inline constexpr int kBlock = 256;

// Looks up the ids of the values of one field, one id per value; the kinds of columns over one
// field differ only in this. Immutable.
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
  // Checks rows as a whole. INVALID_ARGUMENT, and *bad_row is the row that is wrong.
  virtual absl::Status CheckRows(const formats::Columns&, int*) const { return absl::OkStatus(); }

  // Sets ids[i] for the field's value number first + i, i < count <= kBlock: to an id, kMissing, or
  // another negative number if the value has no id (-1, or an identity's negative value).
  // INVALID_ARGUMENT for a value that is not allowed; *bad_value is its number.
  virtual absl::Status Lookup(const formats::Columns& rows, const Scratch& scratch, size_t first,
                              int count, int64_t* ids, size_t* bad_value) const = 0;

 private:
  int field_;
  formats::ValueType type_;
  bool list_;
};

// Makes the lookup of a column over one field (ColumnType::MakeLookup); null for other columns.
std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema, const ColumnSpec& column);
// Makes the lookup of a vocabulary column; labels have vocabularies too.
std::unique_ptr<IdLookup> MakeVocabularyLookup(const formats::Schema& schema,
                                               const ColumnSpec& column);

// Computes the ids of one categorical column. Immutable.
class IdTransform {
 public:
  virtual ~IdTransform() = default;
  // Marks the fields whose fingerprints Apply() reads.
  virtual void MarkFingerprints(std::vector<bool>* fields) const = 0;
  // Replaces *ids. Errors are those of FeatureTransform::Apply, without the column's name.
  virtual absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                             int* bad_row) const = 0;
};

// `column` is a categorical column of the valid `spec`.
std::unique_ptr<IdTransform> MakeIdTransform(const FeatureSpec& spec, const ColumnSpec& column);

// INVALID_ARGUMENT for the first row whose list does not have `shape` values.
absl::Status CheckLengths(const formats::Column& column, int shape, int* bad_row);

// Returns the row that contains value number `value` of a field.
int FindRow(const formats::Column& column, size_t value);
// Returns the number of the field's values in all rows.
size_t NumValues(const formats::Column& column, formats::ValueType type);
// Returns a value as an error message shows it: escaped, in quotes, cut if long.
std::string Shown(std::string_view value);

}  // namespace muster::features
