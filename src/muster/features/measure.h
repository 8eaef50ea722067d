// Measure: computes the numbers of numeric columns that come from the training data: the mean and
// deviation of `normalize: auto`, and the number by which `impute: mean` and `median` replace a
// missing value (docs/spec.md, numeric columns). A first pass over the data computes them before
// the first step (train/input/first_pass.h). They then belong to the spec, which the model folder
// keeps.
//
// They are computed from the values that are present, after clipping: the mean and the population's
// deviation also after log1p, the imputed number before it. If all values of a column are the same,
// its deviation is 1. The median is exact for up to kMedianValues values; for more values it is the
// median of a uniform sample of kMedianValues (Vitter's algorithm R, with a fixed seed). The number
// for an int input is rounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/column.h"
#include "muster/formats/columns.h"

namespace muster::features {

inline constexpr size_t kMedianValues = size_t{1} << 20;

// Returns the name of a column that has to be measured; "" if there is none.
std::string FindUnmeasured(const FeatureSpec& spec);

// Whether a column of `spec` has numbers from the training data, whether known yet or not.
bool DependsOnData(const FeatureSpec& spec);

// Gives the inputs of columns with `impute` their defaults, and has missing values marked
// (formats::Field::mark_missing) for these inputs and those of columns with missing_flag. Call it
// after columns were parsed or their numbers changed.
void ApplyImputes(FeatureSpec* spec);

// Copies the numbers of the columns that `from` has measured and that are otherwise the same.
void CopyMeasured(const FeatureSpec& from, FeatureSpec* spec);

// Prints the measured numbers with all digits, for comparing.
std::string PrintMeasured(const FeatureSpec& spec);

// One owner thread.
class Measure {
 public:
  // `spec` must be valid.
  explicit Measure(const FeatureSpec& spec);
  ~Measure();

  // The fields that the columns to be measured read. Every field is a list, so that a row without a
  // value can be told from a row with the default value.
  const formats::Schema& schema() const { return schema_; }
  // `rows` have schema(). INVALID_ARGUMENT for a value that is not finite, in row *bad_row; nothing
  // of these rows is then added.
  absl::Status Add(const formats::Columns& rows, int* bad_row);
  // Sets the numbers of the columns of *spec. Returns the names of columns for which there was no
  // value.
  std::vector<std::string> Apply(FeatureSpec* spec) const;

 private:
  struct Column;

  formats::Schema schema_;
  std::vector<std::unique_ptr<Column>> columns_;
};

}  // namespace muster::features
