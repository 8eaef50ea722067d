// Detects data that was edited in place between two runs of a training. A saved position is bound
// to the names and sizes of files (data::RecordSource::fingerprint), which an edit may leave
// unchanged.
#pragma once

#include <string>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/io/file_system.h"

namespace muster::train {

// A warning that names the files of `source` that were written after the checkpoint with prefix
// `checkpoint`, according to the file system's times; "" if there are none, or if the checkpoint
// does not exist any more.
absl::StatusOr<std::string> MakeChangedDataWarning(io::FileSystem& files,
                                                   const data::SourceSpec& source,
                                                   const std::string& checkpoint);

}  // namespace muster::train
