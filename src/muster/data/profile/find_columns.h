// Finds which columns files have and how they must be read, from their content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/formats/data_format.h"
#include "muster/formats/schema.h"
#include "muster/io/file_system.h"

namespace muster::data {

// What the first column of CSV without a header is named; the others are c2, c3, ...
constexpr std::string_view kFirstColumnName = "c1";

struct FoundColumns {
  formats::FileFormat type = formats::FileFormat::kCsv;
  // Whether the data says itself which columns it has, as Parquet does; `type` then means nothing.
  bool is_described = false;
  std::vector<std::string> dates = {};  // is_described: string fields of dates
  // `given`, with what a reader cannot find itself: that there is no header (the cells are then
  // named c1, c2, ...), and that spaces around cells must be removed.
  formats::DataFormat format = {};
  // Every field is a list, so that a row without a value can be recognised. The columns of CSV are
  // strings; the fields and types of TFRecord and JSON lines are those of the first 1,000 records.
  formats::Schema schema = {};
  // Fields of TFRecord, JSON lines and Parquet that cannot be read, since they have two types or
  // are nested; columns of CSV that occur twice in the header.
  std::vector<std::string> left_out = {};
  // For people: SetRules::note, and which columns have no name in the header.
  std::vector<std::string> notes = {};
};

// `schemes` are those of SourceSpec; records of other data than files say themselves what they are.
// `wanted`, unless "", is a column that the caller needs: a first row that has it is a header.
// NOT_FOUND for a pattern without files; INVALID_ARGUMENT for files without a record.
absl::StatusOr<FoundColumns> FindColumns(io::FileSystem& files,
                                         const std::vector<std::string>& patterns,
                                         const formats::DataFormat& given,
                                         const SourceSchemes& schemes, const std::string& wanted);

// For CSV: whether the first of `rows`, which all have the same number of cells, names the columns.
// It does if it has `wanted`, or if it has no number, and text where the other rows have numbers.
// In a table of text only, it does if no cell is empty, occurs twice in the row or occurs again in
// its column.
bool HasHeader(const std::vector<std::vector<std::string>>& rows, const std::string& wanted);

// For CSV: whether most cells, except the first of each row, begin with a space.
bool NeedsTrim(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster::data
