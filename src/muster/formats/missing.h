// MissingValues: which values of a field count as missing, by the words of Field::missing. The
// rules are the same in every decoder and in the graph of an exported SavedModel (docs/spec.md,
// inputs).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// A text is missing if it is one of the words. A number is missing if a word, read as a number of
// the field's type, equals it: the word "-999" stands for the float -999.0, the word "nan" for
// every NaN. A list whose only value is missing becomes empty. Immutable.
class MissingValues {
 public:
  explicit MissingValues(const Field& field);

  bool empty() const { return words_.empty(); }
  // Inline, since most fields have no words and a decoder calls it for each value.
  bool Has(std::string_view text) const { return !empty() && HasWord(text); }
  bool Has(int64_t value) const { return !empty() && HasNumber(value); }
  bool Has(float value) const { return !empty() && HasNumber(value); }

  // The words, and those of them that are numbers of the field's type.
  const std::vector<std::string>& words() const { return words_; }
  const std::vector<int64_t>& ints() const { return ints_; }
  const std::vector<float>& floats() const { return floats_; }  // without NaN
  bool nan() const { return nan_; }

  // For decoders, called after a row's values were appended to *column from index `begin` on:
  // removes the value if it is the only one and is missing. Returns whether it did.
  bool RemoveOnly(size_t begin, Column* column) const;

  // For decoders of whole columns, called after `rows` rows of field number `i`, which is `field`,
  // were appended to *columns after the first `first_row` rows (for lists with their offsets).
  // Missing scalars become the default, missing lists become empty. INVALID_ARGUMENT if there is no
  // default.
  absl::Status ReplaceRows(const Field& field, int i, int first_row, int rows,
                           Columns* columns) const;

 private:
  bool HasWord(std::string_view text) const;
  bool HasNumber(int64_t value) const;
  bool HasNumber(float value) const;

  ValueType type_;
  std::vector<std::string> words_;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  bool nan_ = false;
};

// Returns one for each field of a schema.
std::vector<MissingValues> GetMissingValues(const Schema& schema);

}  // namespace muster::formats
