// DataFormat: what a person says about the form of data files (`format:` in a model file, the flags
// of docs/data.md). What is not said is found from a file's content (formats/sniff.h) or has the
// default that a member's comment names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/csv.h"
#include "muster/formats/schema.h"

namespace muster::formats {

enum class FileFormat : uint8_t { kTfRecord = 0, kCsv = 1, kJsonLines = 2 };

// "csv", "tfrecord", "jsonl".
std::string_view FileFormatName(FileFormat format);

struct DataFormat {
  std::optional<FileFormat> type = {};
  // The rest is for CSV; `missing` is for every format.
  std::optional<char> delimiter = {};
  std::optional<bool> header = {};        // default: true, unless `columns` are given
  std::vector<std::string> columns = {};  // names of the cells, in the place of a header's
  std::optional<bool> trim = {};          // default: false
  std::optional<char> quote = {};         // default: '"'; 0: none
  std::optional<EncodingErrors> encoding_errors = {};    // default: keep
  std::optional<std::vector<std::string>> missing = {};  // default: none

  bool has_header() const { return header.value_or(columns.empty()); }
  // How rows are cut and cells are read, where `found` is the delimiter if none is given.
  CsvOptions csv(char found = ',') const;

  friend bool operator==(const DataFormat&, const DataFormat&) = default;
};

// `base` with what `over` says in its place.
DataFormat Override(DataFormat base, const DataFormat& over);

// "csv, delimiter tab, no header, 15 columns": what is said, in words; "" for nothing.
std::string Describe(const DataFormat& format);

// The format for data of a model with these inputs: data without a header whose columns are not
// named has the inputs, in their order.
DataFormat NameColumns(DataFormat format, const Schema& inputs);

// `schema`, whose fields also count the format's missing marks as missing.
Schema WithMissing(Schema schema, const DataFormat& format);

// The values of the members as text. INVALID_ARGUMENT says what is expected.
absl::StatusOr<FileFormat> ParseFileFormat(std::string_view text);  // "csv", "tfrecord", "jsonl"
absl::StatusOr<char> ParseDelimiter(std::string_view text);         // one character, "tab", "^A"
absl::StatusOr<char> ParseQuote(std::string_view text);             // "\"", "'" or "none"
absl::StatusOr<EncodingErrors> ParseEncodingErrors(std::string_view text);

// The texts that these functions read.
std::string PrintDelimiter(char delimiter);
std::string PrintQuote(char quote);
std::string_view EncodingErrorsName(EncodingErrors errors);

// INVALID_ARGUMENT for a column that is named twice, or a delimiter that cannot be one.
absl::Status CheckDataFormat(const DataFormat& format);

}  // namespace muster::formats
