#include "muster/data/column_names.h"

#include <algorithm>
#include <utility>

namespace muster::data {
namespace {

// Returns the number of cells of the next row; 0 if there is no row, or if it cannot be split,
// which the row's reader will report.
absl::StatusOr<size_t> CountCells(formats::CsvRowReader& reader, const formats::CsvOptions& csv) {
  std::string_view row;
  MUSTER_ASSIGN_OR_RETURN(const bool more, reader.Next(&row));
  std::vector<std::string_view> cells;
  std::string scratch;
  if (!more || !formats::SplitCsvRow(row, csv, &cells, &scratch).ok()) return size_t{0};
  return cells.size();
}

// A cell of the header without a name, such as pandas' index has, is called by its place.
std::vector<std::string> NameEmptyCells(std::vector<std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) continue;
    std::string name = StrCat("c", i + 1);
    while (std::ranges::find(names, name) != names.end()) name += '_';
    names[i] = std::move(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadColumnNames(
    std::shared_ptr<const io::RandomAccessFile> file, const formats::CsvOptions& csv,
    const std::vector<std::string>& given, const std::vector<std::string>& may_lack) {
  const std::string path = file->path();
  MUSTER_ASSIGN_OR_RETURN(const auto reader, formats::CsvRowReader::Open(std::move(file), csv));
  if (given.empty()) return NameEmptyCells(reader->header());
  if (csv.header) {
    if (reader->header().size() == given.size()) return given;
    return absl::InvalidArgumentError(StrCat(path, ": its header has ", reader->header().size(),
                                             " columns, but ", given.size(), " names were given"));
  }
  std::vector<std::string> fewer = given;
  std::erase_if(fewer, [&may_lack](const std::string& name) {
    return std::ranges::find(may_lack, name) != may_lack.end();
  });
  if (fewer.size() == given.size()) return given;
  MUSTER_ASSIGN_OR_RETURN(const size_t cells, CountCells(*reader, csv));
  return cells == fewer.size() ? fewer : given;
}

}  // namespace muster::data
