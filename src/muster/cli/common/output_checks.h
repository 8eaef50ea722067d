// Refuses outputs that cannot be written, or would destroy what a verb reads, before anything is
// read or written.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// What a flag says to write: a file, or a folder of parts.
struct Output {
  std::string flag;  // "--out"
  std::string path;  // "": nothing
  bool is_folder = false;
  const char* example = "predictions.csv";  // of a file's name
};

// FAILED_PRECONDITION for a folder where a file is to be, for a file where a folder is to be or
// where the path goes through it, and for a file in a folder that does not exist. A folder that is
// to be written, and those above it, need not exist. Only local paths are looked at.
absl::Status CheckPlace(io::FileSystem& files, const Output& output);

// As CheckPlace for each output; INVALID_ARGUMENT for a file that is one of the data files
// (the same file on disk, under any name or link) and for a folder that contains some of them.
// Missing data and streams are not errors here.
absl::Status CheckNotData(io::FileSystem& files, const std::vector<std::string>& patterns,
                          const std::vector<Output>& outputs);

// Whether both name the same place, which need not exist. "" and "-" name none.
bool SamePlace(io::FileSystem& files, const std::string& a, const std::string& b);

// For predict and evaluate; `out`, their other output, may be "". Wrong use is thrown as CLI11
// does: rejects written to standard output, or to the same place as `out`.
void CheckRejectsPlace(io::FileSystem& files, const std::string& rejects, const std::string& out);

}  // namespace muster::cli
