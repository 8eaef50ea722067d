// DataFormat: what a person says about the format of data files (`format:` in a model file, the
// flags of docs/data.md). A setting that is not given is found from a file's content
// (formats/sniff.h), or has the default in the member's comment.
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

// Returns "csv", "tfrecord" or "jsonl".
std::string_view FileFormatName(FileFormat format);

struct DataFormat {
  std::optional<FileFormat> type = {};
  // `missing` is for every format, the other members are for CSV.
  std::optional<char> delimiter = {};
  std::optional<bool> header = {};                     // default: true, unless `columns` are given
  std::vector<std::string> columns = {};               // names of the cells, instead of a header's
  std::optional<bool> trim = {};                       // default: false
  std::optional<char> quote = {};                      // default: '"'; 0: none
  std::optional<EncodingErrors> encoding_errors = {};  // default: keep
  std::optional<std::vector<std::string>> missing = {};  // default: none

  bool has_header() const { return header.value_or(columns.empty()); }
  // Returns how rows are cut and cells are read; `found` is the delimiter if none is given.
  CsvOptions csv(char found = ',') const;

  friend bool operator==(const DataFormat&, const DataFormat&) = default;
};

// Returns `base` with the settings of `over` replacing its own.
DataFormat Override(DataFormat base, const DataFormat& over);

// Describes the settings: "csv, delimiter tab, no header, 15 columns"; "" if there are none.
std::string Describe(const DataFormat& format);

// Returns the format for data of a model with these inputs: data without a header whose columns are
// not named has the inputs, in their order.
DataFormat NameColumns(DataFormat format, const Schema& inputs);

// Returns `schema`, whose fields also count the format's missing marks as missing.
Schema WithMissing(Schema schema, const DataFormat& format);

// Parse the values of the members. INVALID_ARGUMENT says what is expected.
absl::StatusOr<FileFormat> ParseFileFormat(std::string_view text);  // "csv", "tfrecord", "jsonl"
absl::StatusOr<char> ParseDelimiter(std::string_view text);         // one character, "tab", "^A"
absl::StatusOr<char> ParseQuote(std::string_view text);             // "\"", "'" or "none"
absl::StatusOr<EncodingErrors> ParseEncodingErrors(std::string_view text);

// Print the texts that these functions parse.
std::string PrintDelimiter(char delimiter);
std::string PrintQuote(char quote);
std::string_view EncodingErrorsName(EncodingErrors errors);

// INVALID_ARGUMENT for a column that is named twice, or for a delimiter that is not possible.
absl::Status CheckDataFormat(const DataFormat& format);

}  // namespace muster::formats
