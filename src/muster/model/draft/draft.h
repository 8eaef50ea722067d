// DraftModel: writes a model file from a profile of data, for `muster init`. The file can be
// trained as it is; its comments say what was found in the data, so that a person can change it.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/profile/profile.h"
#include "muster/model/draft/draft_column.h"

namespace muster::model {

struct Draft {
  DraftLabel label;
  std::vector<DraftColumn> columns;  // all columns but the label, in the order of the data
  bool deep = false;                 // a network in addition to the linear model
  int batch_size = 0;
  int64_t epochs = 0;
  std::string yaml;  // the model file

  uint64_t used() const;  // number of columns that are not left out
};

// `data_name` is used in comments. `profile` must outlive the draft. Errors are those of
// MakeDraftLabel, and INVALID_ARGUMENT if there is no column to learn from.
absl::StatusOr<Draft> DraftModel(const data::Profile& profile, const std::string& label,
                                 const std::string& data_name);

// Describes what a column holds: "float, 12 missing (NA), 0.5 to 7, mean 3.2".
std::string DescribeColumn(const data::ColumnProfile& column);

}  // namespace muster::model
