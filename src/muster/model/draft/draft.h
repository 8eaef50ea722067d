// DraftModel: a model file written from a profile of data, for `muster init`. It trains as it is,
// and its comments say what was found, so that a person can change it.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/profile/profile.h"
#include "muster/model/draft/draft_column.h"

namespace muster::model {

struct Draft {
  DraftLabel label;
  std::vector<DraftColumn> columns;  // without the label's, in the order of the data
  bool deep = false;                 // a network beside the linear model
  int batch_size = 0;
  int64_t epochs = 0;
  std::string yaml;  // the model file

  uint64_t used() const;  // columns that are not left out
};

// `data_name` is for comments. `profile` must outlive the draft. Errors: those of MakeDraftLabel;
// INVALID_ARGUMENT if no column is left to learn from.
absl::StatusOr<Draft> DraftModel(const data::Profile& profile, const std::string& label,
                                 const std::string& data_name);

// What a column holds, in words: "float, 12 missing (NA), 0.5 to 7, mean 3.2".
std::string DescribeColumn(const data::ColumnProfile& column);

}  // namespace muster::model
