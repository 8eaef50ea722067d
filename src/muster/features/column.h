// ColumnSpec: a feature column as data. What a column computes is TensorFlow's feature_column of
// the same name, to the id (docs/features.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/schema.h"

namespace muster::features {

enum class ColumnKind {
  kNumeric,     // input -> one float: ((log1p ? log(1+x) : x) - mean) / stddev
  kBucketized,  // input -> id: the number of boundaries <= x
  kVocabulary,  // input -> id: its place in the list, an out-of-vocabulary bucket, or none
  kIdentity,    // int input -> itself, in [0, buckets)
  kHash,        // input -> Fingerprint64(printed value) mod buckets
  kCross,       // fields and ids of columns -> FingerprintCat64 chain mod buckets
  kIndicator,   // categorical column -> counts of its ids, buckets() floats
  kEmbedding,   // categorical column -> combined rows of a trained table, `dimension` floats
};

enum class Combiner { kSum, kMean, kSqrtN };

struct ColumnSpec {
  std::string name;
  ColumnKind kind = ColumnKind::kNumeric;
  // The schema field that is read; for kIndicator and kEmbedding the categorical column.
  std::string input;

  bool log1p = false;  // kNumeric
  double mean = 0;
  double stddev = 1;

  std::vector<float> boundaries;  // kBucketized, ascending

  // kVocabulary: the words in id order, printed (ints as decimal). A vocabulary file is read into
  // this when the spec is loaded, one word a line.
  std::vector<std::string> words;
  std::string words_file;   // where they came from; "" for a list
  int64_t oov_buckets = 0;  // extra ids behind the words: words.size() + Fingerprint64 mod this
  int64_t default_id = -1;  // for unknown words when oov_buckets == 0; -1: no id
                            // kIdentity: for values outside [0, buckets); -1: a negative value has
                            // no id, one from `buckets` on is an error

  int64_t buckets = 0;  // kHash, kCross, kIdentity
  // kCross: fields (their raw values) or bucketized, vocabulary or identity columns (their ids). A
  // name that is both means the field.
  std::vector<std::string> keys;
  uint64_t hash_key = 0xDECAFCAFFE;  // kCross; 0 also means this one

  int dimension = 0;                    // kEmbedding
  Combiner combiner = Combiner::kMean;  // kEmbedding

  bool is_categorical() const;  // gives ids: bucketized to cross
  bool is_dense() const { return !is_categorical(); }
  // Ids of a categorical column are in [0, num_ids()).
  int64_t num_ids() const;
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

// The label as data. An empty `input`: rows without a label.
struct LabelSpec {
  enum class Form {
    kOne,     // one number a row: a scalar field's value, or the place of its word
    kVector,  // `width` numbers: the values of a list field, which has as many
    kSet,     // `width` numbers of 0 or 1: 1 at the places of the words (or, without words, at the
              // ids) that a list field holds
  };
  std::string input = {};
  std::vector<std::string> words = {};
  Form form = Form::kOne;
  int width = 1;  // numbers a row
  friend bool operator==(const LabelSpec&, const LabelSpec&) = default;
};

// A schema with its columns: what a FeatureTransform is made of.
struct FeatureSpec {
  formats::Schema schema;
  std::vector<ColumnSpec> columns;
  LabelSpec label;
  std::string weight;  // an int or float field, the weight of a row's loss; "" for none
  std::string key;     // a field that predictions are returned with; "" for none

  const ColumnSpec* Find(std::string_view name) const;
  // The first field that is not the label, weight or key; null when there is none.
  const formats::Field* AnyInput() const;
  friend bool operator==(const FeatureSpec&, const FeatureSpec&) = default;
};

// The words of a vocabulary over an int field are decimal numbers: their values, or
// INVALID_ARGUMENT for a word that is not one.
absl::StatusOr<int64_t> ParseIntWord(std::string_view word);

// Everything that can be wrong with a spec by itself: unknown inputs (with the nearest word), types
// that do not fit, empty or unsorted boundaries, duplicate names or words, sizes out of range
// (a table has at most 2^31 - 1 rows). INVALID_ARGUMENT "column 'x': ...".
absl::Status Validate(const FeatureSpec& spec);

}  // namespace muster::features
