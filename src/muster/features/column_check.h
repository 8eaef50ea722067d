// ColumnCheck: code that the checks of all columns share. It has one column, and the schema and the
// other columns to look up names. Internal to this layer.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/nearest.h"
#include "muster/features/validate.h"

namespace muster::features {

inline constexpr int64_t kMaxTableRows = std::numeric_limits<int32_t>::max();

// All errors are INVALID_ARGUMENT.
class ColumnCheck {
 public:
  ColumnCheck(const FeatureSpec& spec, const ColumnSpec& column) : spec_(spec), column_(column) {}
  const FeatureSpec& spec() const { return spec_; }
  const ColumnSpec& column() const { return column_; }

  // The field that the column reads.
  absl::StatusOr<const formats::Field*> Input() const { return FieldNamed(column_.input); }

  absl::StatusOr<const formats::Field*> FieldNamed(const std::string& name) const {
    const int index = spec_.schema.Find(name);
    if (index >= 0) return &spec_.schema.fields[index];
    std::vector<std::string> known;
    for (const formats::Field& field : spec_.schema.fields) known.push_back(field.name);
    return Invalid("unknown input '", name, "'", DidYouMean(name, known));
  }

  absl::StatusOr<const formats::Field*> Number(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, Input());
    if (field->type != formats::ValueType::kString) return field;
    return Invalid(what, " needs an int or float input; '", field->name, "' is a string");
  }

  // The input must have one number per row, or be a list of `shape` numbers.
  absl::Status Numbers(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, Number(what));
    if (!field->list && column_.shape != 1) {
      return Invalid("shape is ", column_.shape, " and '", field->name,
                     "' has one value per row; make it a list or leave 'shape' out");
    }
    return Shape();
  }

  absl::Status Shape() const {
    if (column_.shape >= 1 && column_.shape <= kMaxDimension) return absl::OkStatus();
    return Invalid("shape is ", column_.shape, "; it must be in [1, ", kMaxDimension, "]");
  }

  absl::StatusOr<const formats::Field*> IntOrString(std::string_view what) const {
    MUSTER_ASSIGN_OR_RETURN(const formats::Field* field, Input());
    if (field->type == formats::ValueType::kFloat) {
      return Invalid(what, " needs an int or string input; '", field->name,
                     "' is a float (bucketize it, or read it as an int or a string)");
    }
    return field;
  }

  absl::Status Buckets() const {
    if (column_.buckets >= 1 && column_.buckets <= kMaxTableRows) return absl::OkStatus();
    return Invalid("buckets is ", column_.buckets, "; it must be in [1, ", kMaxTableRows, "]");
  }

  absl::Status Scale() const {
    if (!std::isfinite(static_cast<float>(column_.mean))) {
      return Invalid("mean is ", column_.mean, "; it must be a finite float");
    }
    const float stddev = static_cast<float>(column_.stddev);
    if (!std::isfinite(stddev) || !(stddev > 0)) {
      return Invalid("stddev is ", column_.stddev, "; it must be a finite float above 0");
    }
    return absl::OkStatus();
  }

  absl::Status NumIds() const {
    const int64_t ids = spec_.NumIds(column_);
    if (ids <= kMaxTableRows) return absl::OkStatus();
    return Invalid("has ", ids, " ids; at most ", kMaxTableRows, " are possible");
  }

  absl::Status DefaultId() const {
    const int64_t ids = spec_.NumIds(column_);
    if (column_.default_id >= -1 && column_.default_id < ids) return absl::OkStatus();
    return Invalid("the default id ", column_.default_id, " is not in [0, ", ids,
                   ") (-1 is for none)");
  }

  absl::StatusOr<const ColumnSpec*> Categorical() const {
    const ColumnSpec* const input = spec_.Find(column_.input);
    if (input != nullptr && input->is_categorical()) return input;
    if (input != nullptr) return Invalid("its input '", input->name, "' is not categorical");
    std::vector<std::string> known;
    for (const ColumnSpec& other : spec_.columns) {
      if (other.is_categorical()) known.push_back(other.name);
    }
    return Invalid("its input '", column_.input, "' is not a categorical column",
                   DidYouMean(column_.input, known));
  }

 private:
  static constexpr int kMaxDimension = 1 << 16;

  const FeatureSpec& spec_;
  const ColumnSpec& column_;
};

}  // namespace muster::features
