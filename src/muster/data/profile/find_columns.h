// What columns files have and how they must be read, found from their content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/data_format.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

// What the first column of CSV without a header is named; the others are c2, c3, ...
constexpr std::string_view kFirstColumnName = "c1";

struct FoundColumns {
  formats::FileFormat type = formats::FileFormat::kCsv;
  // `given`, and what a reader cannot find itself: that there is no header (with the names c1, c2,
  // ... of the cells) and that spaces around cells are to be left out.
  formats::DataFormat format = {};
  // Every field is a list, so that a row without a value is recognised; of CSV all are strings.
  // Of TFRecord and JSON lines the fields and their types are those of the first 1,000 records.
  formats::Schema schema = {};
  // Fields of TFRecord and JSON lines that cannot be read: of two types, or nested.
  std::vector<std::string> left_out = {};
  std::string note = {};  // as SetRules::note
};

// `wanted`, unless "", is a column that the caller needs: a first row that has it is a header.
// NOT_FOUND for a pattern without files; INVALID_ARGUMENT for files without a record.
absl::StatusOr<FoundColumns> FindColumns(io::FileSystem& files,
                                         const std::vector<std::string>& patterns,
                                         const formats::DataFormat& given,
                                         const std::string& wanted);

// For CSV: whether the first of `rows`, of which each has the same number of cells, names columns.
// It does if it has `wanted`, or if it has no number and text where the other rows have numbers. In
// a table of text it does if no cell is empty, occurs twice or is in its column again.
bool HasHeader(const std::vector<std::vector<std::string>>& rows, const std::string& wanted);

// For CSV: whether most cells that are not the first of their row begin with a space.
bool NeedsTrim(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster::data
