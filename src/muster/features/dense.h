// Converts values to floats: numeric, indicator and sequence columns, and labels. Internal to this
// layer.
#pragma once

#include <memory>
#include <vector>

#include "muster/features/ids.h"

namespace muster::features {

// Computes the floats of one dense column. Immutable.
class DenseTransform {
 public:
  virtual ~DenseTransform() = default;
  virtual void MarkFingerprints(std::vector<bool>* fields) const = 0;
  // Replaces *dense. Errors are those of FeatureTransform::Apply, without the column's name.
  virtual absl::Status Apply(const formats::Columns& rows, Scratch* scratch, DenseColumn* dense,
                             int* bad_row) const = 0;
};

// Clips and scales the values of a number field as its column says. Immutable.
class Normalizer {
 public:
  Normalizer(const formats::Schema& schema, const ColumnSpec& column);
  int field() const { return field_; }
  // Replaces *values by those of all rows, one after the other. INVALID_ARGUMENT names a value that
  // is not finite or becomes so; *bad_row is its row.
  absl::Status Apply(const formats::Columns& rows, std::vector<float>* values, int* bad_row) const;

 private:
  absl::Status NotFinite(const formats::Column& input, size_t i, float result) const;

  int field_;
  formats::ValueType type_;
  float low_;
  float high_;
  bool log1p_;
  int64_t whole_mean_ = 0;
  float mean_ = 0;  // what is left of it
  float stddev_;
};

// Makes labels, as LabelSpec describes them, and weights.
class LabelTransform {
 public:
  // For a valid spec whose label has an input.
  explicit LabelTransform(const FeatureSpec& spec);

  void MarkFingerprints(std::vector<bool>* fields) const;
  // Replaces *labels. INVALID_ARGUMENT names the value; *bad_row is its row.
  absl::Status Apply(const formats::Columns& rows, const Scratch& scratch,
                     std::vector<float>* labels, int* bad_row) const;

 private:
  absl::Status FromWords(const formats::Columns& rows, const Scratch& scratch,
                         std::vector<float>* labels, int* bad_row) const;
  absl::Status FromNumbers(const formats::Column& input, std::vector<float>* labels,
                           int* bad_row) const;
  absl::Status FromIds(const formats::Column& input, int rows, std::vector<float>* labels,
                       int* bad_row) const;
  absl::Status CheckWidths(const formats::Column& input, int rows, int* bad_row) const;

  LabelSpec spec_;
  int field_;
  formats::ValueType type_;
  std::unique_ptr<IdLookup> words_;  // null: the labels are numbers
  int64_t minus_one_;                // the place of the word -1 of an int label, or -1
};

// Replaces *weights by the values of `input`. INVALID_ARGUMENT for one below 0 or not finite;
// *bad_row is its row.
absl::Status CopyWeights(const formats::Column& input, formats::ValueType type,
                         std::vector<float>* weights, int* bad_row);

// The position of the first value that is not finite, or `count`.
size_t FirstNotFinite(const float* values, size_t count);

}  // namespace muster::features
