// FileRules of the files of a data set: what `format:` and flags say, completed by what the files
// themselves are (formats/sniff.h).
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

// "TFRecord", "CSV", "JSON lines".
std::string_view FormatWords(FileFormat format);

// The error of a path of the data that is a folder, which says what to write instead.
absl::Status FolderError(std::string_view path);

// The rules of one file. Errors are those of formats::SniffFile, and INVALID_ARGUMENT for a folder.
absl::StatusOr<FileRules> FindFileRules(io::FileSystem& files, const std::string& path,
                                        const formats::DataFormat& given);

struct SetRules {
  std::vector<FileRules> files;  // in the order of the paths; they differ in compression alone
  // What was found and was neither given nor to be expected by the names, to be told to the user:
  // "data/part-0 is read as CSV with ';' between its 15 cells ..."; "" if there is nothing to tell.
  std::string note = {};
};
// The rules of files that are read together. An empty file has the format of the others.
// INVALID_ARGUMENT for files of two formats.
absl::StatusOr<SetRules> FindSetRules(io::FileSystem& files, const std::vector<std::string>& paths,
                                      const formats::DataFormat& given);

}  // namespace muster::data
