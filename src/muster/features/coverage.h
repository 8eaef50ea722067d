// What columns make of values that have no id.
//
// IdCoverage: counts the rows in which a categorical column finds no regular id, such as rows of
// 'female' with a vocabulary of 'Female'. Training warns about such columns (CoverageWatch),
// `muster records stats` counts the rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"

#include "muster/features/column.h"
#include "muster/formats/columns.h"

namespace muster::features {

// One owner thread.
class IdCoverage {
 public:
  // Checks the vocabulary, identity, hash and keys columns of `spec`, which is valid.
  explicit IdCoverage(const FeatureSpec& spec);

  // `rows` are of the spec's schema and fit its columns.
  void Add(const formats::Columns& rows);

  struct Column {
    std::string name;
    std::string expects;  // "its words are 'a', 'b', ..."
    // Counts rows without an id: no value is a word, none is below `buckets`, or there is no value.
    // A row whose only ids are out-of-vocabulary buckets or the default id counts too.
    uint64_t without = 0;
    std::vector<std::string> values =
        {};  // the first different values of such rows, at most three, as shown
  };
  uint64_t rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  struct Known {
    ColumnKind kind;
    int field;
    bool list;
    formats::ValueType type;
    int64_t buckets = 0;
    absl::flat_hash_set<std::string> words = {};
    absl::flat_hash_set<int64_t> numbers = {};
  };
  bool HasId(const Known& known, const formats::Column& values, size_t value) const;
  void AddColumn(const Known& known, const formats::Columns& rows, Column* column);

  std::vector<Known> known_;  // by column
  std::vector<Column> columns_;
  uint64_t rows_ = 0;
};

// The values of a vocabulary column that are there, and those of them that are none of its words.
struct WordCount {
  std::string column = {};
  uint64_t values = 0;
  uint64_t unknown = 0;
  std::string example = {};  // the first of them, as shown
};

// Returns a warning for each column of `spec` of whose values more than half are unknown words.
std::vector<std::string> WarnOfUnknownWords(const FeatureSpec& spec,
                                            const std::vector<WordCount>& counts);

// Watches the first rows of a training run. One owner thread.
class CoverageWatch {
 public:
  static constexpr uint64_t kRows = 10'000;

  explicit CoverageWatch(const FeatureSpec& spec) : coverage_(spec) {}
  void Add(const formats::Columns& rows);
  // Returns warnings once, when kRows rows were added or the data `ended` before that: one line for
  // each column that has no id in more than 99 % of its rows. Otherwise returns nothing.
  std::vector<std::string> ConsumeWarnings(bool ended);
  bool done() const { return done_; }  // whether it has returned what there is to warn of

 private:
  IdCoverage coverage_;
  bool done_ = false;
};

}  // namespace muster::features
