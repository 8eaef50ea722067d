// Finds the names of a CSV file's columns: its header, or names that were given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/csv.h"
#include "muster/io/file_system.h"

namespace muster::data {

// Returns the names in the order of the file's cells. If no names are `given`, they are the
// header's, or none if `csv` has no header. Given names replace a header's; those of `may_lack` are
// left out if the file has no header and the first row has that many cells fewer. INVALID_ARGUMENT
// if the number of given names differs from the header's; errors of reading the first row.
absl::StatusOr<std::vector<std::string>> ReadColumnNames(
    std::shared_ptr<const io::RandomAccessFile> file, const formats::CsvOptions& csv,
    const std::vector<std::string>& given, const std::vector<std::string>& may_lack);

}  // namespace muster::data
