// Reads any bytes as a CSV file: the splitter and the decoder must handle every row that the reader
// cuts, rows must join to the file without a gap, and cells that are written again must be read as
// the same cells.
#include <cstdio>
#include <cstdlib>

#include "muster/formats/csv.h"
#include "muster/formats/csv_test_util.h"

namespace muster::formats {
namespace {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "csv_fuzz: %s\n", what);
  std::abort();
}

Schema MakeSchema(const std::vector<std::string>& header) {
  Schema schema;
  for (const std::string& name : header) {
    Field field;
    field.name = name;
    field.type = static_cast<ValueType>(schema.fields.size() % 3);
    field.list = schema.fields.size() % 5 == 4;
    field.truncate = schema.fields.size() % 6 == 3;
    schema.fields.push_back(std::move(field));
    if (schema.fields.size() == 16) break;
  }
  return schema;
}

void CheckRow(std::string_view row, CsvOptions options) {
  std::vector<std::string_view> cells, again;
  std::string scratch, scratch_again, line;
  if (!SplitCsvRow(row, options, &cells, &scratch).ok()) return;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += options.delimiter;
    AppendCsvCell(cells[i], options.delimiter, &line);
  }
  Require(SplitCsvRow(line, options, &again, &scratch_again).ok(), "a written row is not read");
  Require(cells == again, "cells changed when written and read");
  CsvRowScanner scanner(options);
  Require(scanner.Find(line + "\n") == line.size() + 1, "a written row does not end at its end");
}

void Run(std::string_view input) {
  CsvOptions options;
  if (!input.empty() && input[0] == ';') options.delimiter = ';';
  auto reader = CsvRowReader::Open(StringFile(std::string(input)), options);
  if (!reader.ok()) return;
  const Schema schema = MakeSchema((*reader)->header());
  auto decoder = NewCsvDecoder(schema, (*reader)->header(), options);
  Columns columns(schema);
  std::string_view row;
  uint64_t end = (*reader)->offset(), line = 1;
  while (true) {
    const absl::StatusOr<bool> more = (*reader)->Next(&row);
    if (!more.ok() || !*more) return;
    Require(!row.empty(), "an empty row");
    Require((*reader)->row_offset() >= end, "rows overlap");
    Require((*reader)->offset() > (*reader)->row_offset(), "a row without bytes");
    Require((*reader)->line() > line, "lines do not grow");
    end = (*reader)->offset();
    line = (*reader)->line();
    CheckRow(row, options);
    if (!decoder.ok()) continue;
    const int before = columns.rows();
    const bool decoded = (*decoder)->Decode(row, &columns).ok();
    Require(columns.rows() == before + decoded, "a wrong count of rows");
    columns.Clear();
  }
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
