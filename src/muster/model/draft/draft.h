// DraftModel: writes a model file from a profile of data, for `muster init`. The file can be
// trained as it is; its comments say what was found in the data, so that a person can change it.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/profile/profile.h"
#include "muster/model/draft/draft_column.h"
#include "muster/model/draft/draft_type.h"

namespace muster::model {

struct DraftRequest {
  std::string label;
  std::string data_name;               // for comments
  std::string model = {};              // of DraftTypes(); "": linear or wide_deep, by the rows
  std::vector<std::string> item = {};  // two_tower: the columns that describe the item
};

struct Draft {
  DraftLabel label;
  std::vector<DraftColumn> columns;  // all columns but the label, in the order of the data
  const DraftType* type = nullptr;
  int batch_size = 0;
  int64_t epochs = 0;
  std::vector<std::string> warnings;  // of columns whose values are read as words although they
                                      // look like numbers or dates
  std::string yaml;                   // the model file

  uint64_t used() const;  // number of columns that are not left out
};

// `profile` must outlive the draft. Errors: those of MakeDraftLabel, FindDraftType and
// CheckDraftType; INVALID_ARGUMENT if no column is left to learn from.
absl::StatusOr<Draft> DraftModel(const data::Profile& profile, const DraftRequest& request);

// Describes what a column holds: "float, 12 missing (NA), 0.5 to 7, mean 3.2".
std::string DescribeColumn(const data::ColumnProfile& column);

}  // namespace muster::model
