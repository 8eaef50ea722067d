// ColumnStats: statistics of the columns of a data set, for `muster records stats`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "muster/data/number_sums.h"
#include "muster/formats/columns.h"
#include "muster/formats/schema.h"

namespace muster::data {

// The most distinct strings that are counted by value, in all columns together.
constexpr size_t kMaxDistinct = 1'000'000;

// One owner thread.
class ColumnStats {
 public:
  explicit ColumnStats(const formats::Schema& schema);

  // The schema to decode with: every field is a list without a default, so that a row without a
  // value can be told from a row with the default.
  const formats::Schema& schema() const { return schema_; }
  void Add(const formats::Columns& columns);
  // Fills *out, which must be empty, with the same rows in the original schema: a scalar becomes
  // the row's first value, else the default, else "" or -1.
  void FillScalars(const formats::Columns& columns, formats::Columns* out) const;

  struct Column {
    std::string name;
    formats::ValueType type = formats::ValueType::kString;
    uint64_t values = 0;
    uint64_t missing = 0;  // rows without a value
    // For numbers; the deviation is the population's.
    double min = 0, max = 0, mean = 0, stddev = 0;
    // For strings.
    uint64_t distinct = 0;
    // not all were counted, since there were too many
    bool more_distinct = false;
    std::vector<std::pair<std::string, uint64_t>> top;  // most frequent first, at most `top`
  };
  uint64_t rows() const { return rows_; }
  std::vector<Column> Summarize(size_t top) const;

 private:
  struct State {
    uint64_t values = 0;
    uint64_t missing = 0;
    NumberSums numbers;
    absl::flat_hash_map<std::string, uint64_t> strings;
    bool more_distinct = false;
  };
  void AddString(std::string_view value, State* state);

  const formats::Schema given_;
  formats::Schema schema_;
  std::vector<State> states_;
  uint64_t rows_ = 0;
  size_t distinct_ = 0;  // in all columns together
};

}  // namespace muster::data
