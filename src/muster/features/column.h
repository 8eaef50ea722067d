// ColumnSpec: a feature column as data. A column computes the same as TensorFlow's feature_column
// of the same name, including all ids (docs/features.md).
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/growth.h"
#include "muster/formats/schema.h"

namespace muster::features {

enum class ColumnKind {
  // input -> `shape` floats: ((log1p ? log(1+x), 0 if x <= -1 : x) - mean) / stddev, of the clipped
  // x; with missing_flag one more float, 1 where the row has no value, else 0
  kNumeric,
  kBucketized,       // input -> id of each of its `shape` values: the number of boundaries <= x
  kVocabulary,       // input -> id: its place in the list, an out-of-vocabulary bucket, or none
  kIdentity,         // int input -> itself, in [0, buckets)
  kHash,             // input -> Fingerprint64(printed value) mod buckets
  kKeys,             // input -> its 64-bit key, which has a row of a growing table
  kCross,            // fields and ids of columns -> FingerprintCat64 chain mod buckets
  kWeighted,         // categorical column, number input -> its ids, each with a weight
  kIndicator,        // categorical column -> counts (sums of weights) of its ids, a float per id
  kEmbedding,        // categorical column -> combined rows of a trained table, `dimension` floats
  kSequenceNumeric,  // list input -> steps of `shape` floats, as kNumeric, pooled
};

// What a numeric column reads in a row without a value. kNone: the input's default, or it is an
// error; kValue: a given number; kMean, kMedian: that of the values in the training data.
enum class Impute { kNone, kValue, kMean, kMedian };

enum class Combiner { kSum, kMean, kSqrtN };

// How the steps of a sequence are combined: their sum; the sum divided by their number or by its
// square root; the maximum of each float; the last step. Without steps: zeros.
enum class Pooling { kNone, kSum, kMean, kSqrtN, kMax, kLast };

struct ColumnSpec {
  std::string name;
  ColumnKind kind = ColumnKind::kNumeric;
  // The schema field that is read; for kWeighted, kIndicator and kEmbedding a categorical column.
  std::string input;
  // For kNumeric and kBucketized of a list: how many values every row has; the ids of value number
  // i of a bucketized row begin at i * (boundaries + 1). For kSequenceNumeric: values per step.
  int shape = 1;

  bool log1p = false;  // kNumeric, kSequenceNumeric
  double mean = 0;
  double stddev = 1;
  // kNumeric, kSequenceNumeric: mean and stddev are computed from the training data.
  bool normalize = false;
  float clip_low = -std::numeric_limits<float>::infinity();  // for the same columns, before log1p
  float clip_high = std::numeric_limits<float>::infinity();
  Impute impute = Impute::kNone;  // kNumeric of a scalar
  double imputed = 0;             // the number, if impute is not kNone
  bool missing_flag = false;      // kNumeric of a scalar with a default
  // Numbers from the training data (normalize, impute) are not known yet (features/measure.h).
  bool to_measure = false;

  std::vector<float> boundaries;  // kBucketized, ascending

  // kVocabulary: the words in id order, printed (ints as decimals). The words of a vocabulary file,
  // one per line, are read when the spec is loaded.
  std::vector<std::string> words;
  std::string words_file;   // the vocabulary file; "" if the words are listed
  int64_t oov_buckets = 0;  // number of ids after the words: words.size() + Fingerprint64 mod this
  int64_t default_id = -1;  // for unknown words when oov_buckets == 0; -1: no id
                            // kIdentity: the id of values outside [0, buckets). -1: a negative
                            // value has no id, and a value from `buckets` on is an error.

  int64_t buckets = 0;  // kHash, kCross, kIdentity
  GrowthSpec growth;    // kKeys
  // kCross: fields (their raw values) or bucketized, vocabulary or identity columns (their ids). A
  // name that is both stands for the field.
  std::vector<std::string> keys;
  uint64_t hash_key = 0xDECAFCAFFE;  // kCross; 0 also means this one

  std::string weights;  // kWeighted: a number field with a value for each value of the column

  int dimension = 0;                    // kEmbedding
  Combiner combiner = Combiner::kMean;  // kEmbedding
  // kEmbedding of a list: if not kNone, every value is a step, a value without an id a step of
  // zeros. kSequenceNumeric: never kNone.
  Pooling pooling = Pooling::kNone;
  std::string shared;  // kEmbedding: the table's name; columns with the same name share the table
  double max_norm =
      0;  // kEmbedding: rows that are longer are read scaled down to it; 0: as they are

  bool is_categorical() const;  // true from kBucketized to kWeighted: the column gives ids
  bool is_dense() const { return !is_categorical(); }
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

// What a numeric column subtracts from whole numbers before they become float32, so that dates and
// long numbers keep their last digits: the mean, if nothing comes before it (clip, log1p) and it is
// a whole number, or one so large that float32 has no fractions there; else 0. Up to float32's
// largest exact whole number, 2^24, this gives the bits of TensorFlow's columns.
int64_t GetWholeMean(const ColumnSpec& column);

// The label as data. With an empty `input` rows have no label.
struct LabelSpec {
  enum class Form {
    kOne,     // one number per row: the value of a scalar field, or the index of its word
    kVector,  // `width` numbers: the values of a list field of that length
    kSet,     // `width` numbers of 0 or 1: 1 at the places of the words (or, without words, at the
              // ids) that a list field holds
  };
  std::string input = {};
  std::vector<std::string> words = {};
  Form form = Form::kOne;
  int width = 1;  // numbers per row
  friend bool operator==(const LabelSpec&, const LabelSpec&) = default;
};

// A schema with its columns: the specification of a FeatureTransform.
struct FeatureSpec {
  formats::Schema schema;
  std::vector<ColumnSpec> columns;
  LabelSpec label;
  std::string weight;  // an int or float field, the weight of a row's loss; "" for none
  std::string key;     // a field that is written with the predictions; "" for none

  const ColumnSpec* Find(std::string_view name) const;
  // Returns the first field that is not the label, weight or key; null if there is none.
  const formats::Field* AnyInput() const;
  // Ids of a categorical column are in [0, NumIds()). A dense column, including embeddings, has
  // Width() floats per row. A column with HasLists() reads a list. The results are unspecified for
  // an invalid spec.
  int64_t NumIds(const ColumnSpec& column) const;
  // Returns the growth of a keys column or of a weighted column over one, whose NumIds() is 0; null
  // for others.
  const GrowthSpec* GetGrowth(const ColumnSpec& column) const;
  int Width(const ColumnSpec& column) const;
  bool HasLists(const ColumnSpec& column) const;
  // Adds the column `name` and all columns that it is made from to *used_columns, and the fields
  // that these read to *used_fields.
  void CollectUses(const std::string& name, std::set<std::string>* used_columns,
                   std::set<std::string>* used_fields) const;
  friend bool operator==(const FeatureSpec&, const FeatureSpec&) = default;
};

// Parses a word of a vocabulary over an int field, which must be a decimal number; else
// INVALID_ARGUMENT.
absl::StatusOr<int64_t> ParseIntWord(std::string_view word);

// Finds every error that shows in a spec alone: unknown inputs (with the nearest word), types that
// do not fit, empty or unsorted boundaries, duplicate names or words, sizes out of range (a table
// has at most 2^31 - 1 rows). INVALID_ARGUMENT "column 'x': ...".
absl::Status Validate(const FeatureSpec& spec);

}  // namespace muster::features
