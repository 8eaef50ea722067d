// Finds a key that `predict` could not read, which a training does not read, before the training
// has taken its hours.
#pragma once

#include <string>

#include "muster/data/source.h"
#include "muster/features/column.h"
#include "muster/io/file_system.h"

namespace muster::train {

// Returns a warning if the key of `features` cannot be read in the first records of `source`, which
// was opened from `spec`; "" if it can, if there is no key, or if the data do not have its column,
// which only data to predict need. Only files of records are looked at: those of columns would read
// the key's column during the whole training.
std::string MakeKeyWarning(io::FileSystem& files, const data::SourceSpec& spec,
                           const data::RecordSource& source, const features::FeatureSpec& features);

}  // namespace muster::train
