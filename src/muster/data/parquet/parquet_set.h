// The data of Parquet files as a SourceSet. Items are files, and chunks are row groups.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/data/source_set.h"

namespace muster::data {

struct ParquetSettings {
  // Opens the file systems in which files are looked for, once, when they are first needed.
  std::function<std::shared_ptr<io::FileSystem>()> open_files = {};
  std::string python = "python3";  // one that has pyarrow
};

// Returns the set; muster-parquet is started when a file is first opened. Add it to
// SourceSpec::schemes as kParquetKind. Patterns are files, globs, and folders, of which all files
// are read, also in folders below (dt=2026-11-20/), but none whose name begins with '_' or '.'. A
// field that a file does not have is taken from the names of its folders, as Hive writes them. The
// errors of the program are INVALID_ARGUMENT, which names the file and the column;
// FAILED_PRECONDITION if Python has no pyarrow.
std::shared_ptr<const SourceSet> NewParquetSet(ParquetSettings settings);

}  // namespace muster::data
