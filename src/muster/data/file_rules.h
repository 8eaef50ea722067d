// Finds the FileRules for the files of a data set: the settings of `format:` and flags, completed
// by what the files' content shows (formats/sniff.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/record_index.h"
#include "muster/formats/data_format.h"
#include "muster/io/file_system.h"

namespace muster::data {

// Returns "TFRecord", "CSV" or "JSON lines".
std::string_view FormatWords(FileFormat format);

// Returns the error for data whose path is a folder; it says what to write instead.
absl::Status FolderError(std::string_view path);

// Finds the rules of one file. Errors are those of formats::SniffFile, and INVALID_ARGUMENT for a
// folder.
absl::StatusOr<FileRules> FindFileRules(io::FileSystem& files, const std::string& path,
                                        const formats::DataFormat& given);

struct SetRules {
  std::vector<FileRules> files;  // in the order of the paths; they may differ only in compression
  // What the user should be told: what was found, was not given and is not what the names suggest.
  // "data/part-0 is read as CSV with ';' between its 15 cells ..."; "" if there is nothing to tell.
  std::string note = {};
};
// Finds the rules of files that are read together. An empty file gets the format of the others.
// INVALID_ARGUMENT for files of two formats.
absl::StatusOr<SetRules> FindSetRules(io::FileSystem& files, const std::vector<std::string>& paths,
                                      const formats::DataFormat& given);

}  // namespace muster::data
