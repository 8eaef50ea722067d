#include "muster/formats/data_format.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"

namespace muster::formats {
namespace {

constexpr std::array<std::pair<std::string_view, FileFormat>, 3> kFileFormats = {{
    {"csv", FileFormat::kCsv},
    {"tfrecord", FileFormat::kTfRecord},
    {"jsonl", FileFormat::kJsonLines},
}};

constexpr std::array<std::pair<std::string_view, EncodingErrors>, 4> kEncodingErrors = {{
    {"keep", EncodingErrors::kKeep},
    {"error", EncodingErrors::kError},
    {"replace", EncodingErrors::kReplace},
    {"latin1", EncodingErrors::kLatin1},
}};

template <typename Table>
auto FindByName(const Table& table, std::string_view what, std::string_view text)
    -> absl::StatusOr<typename Table::value_type::second_type> {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) {
    if (name == text) return value;
    names.emplace_back(name);
  }
  return absl::InvalidArgumentError(
      StrCat("'", text, "' is not a ", what, DidYouMean(text, names)));
}

template <typename Table, typename Value>
std::string_view FindName(const Table& table, Value wanted) {
  for (const auto& [name, value] : table) {
    if (value == wanted) return name;
  }
  return "unknown";
}

}  // namespace

std::string_view FileFormatName(FileFormat format) { return FindName(kFileFormats, format); }
std::string_view EncodingErrorsName(EncodingErrors errors) {
  return FindName(kEncodingErrors, errors);
}

CsvOptions DataFormat::csv(char found) const {
  return {.delimiter = delimiter.value_or(found),
          .quote = quote.value_or('"'),
          .header = has_header(),
          .trim = trim.value_or(false),
          .encoding_errors = encoding_errors.value_or(EncodingErrors::kKeep)};
}

DataFormat Override(DataFormat base, const DataFormat& over) {
  if (over.type) base.type = over.type;
  if (over.delimiter) base.delimiter = over.delimiter;
  if (over.header) base.header = over.header;
  if (!over.columns.empty()) base.columns = over.columns;
  // If a flag names columns, the data has no header, whatever the model's data had; if a flag says
  // that there is a header, the header names the columns.
  if (!over.columns.empty() && !over.header) base.header = over.header;
  if (over.header == true && over.columns.empty()) base.columns.clear();
  if (over.trim) base.trim = over.trim;
  if (over.quote) base.quote = over.quote;
  if (over.encoding_errors) base.encoding_errors = over.encoding_errors;
  if (over.missing) base.missing = over.missing;
  return base;
}

std::string Describe(const DataFormat& format) {
  std::vector<std::string> parts;
  if (format.type) parts.emplace_back(FileFormatName(*format.type));
  if (format.delimiter) parts.push_back(StrCat("delimiter ", PrintDelimiter(*format.delimiter)));
  if (format.header) parts.emplace_back(*format.header ? "header" : "no header");
  if (!format.columns.empty()) {
    parts.push_back(StrCat("columns ", absl::StrJoin(format.columns, " ")));
  }
  if (format.trim) parts.emplace_back(*format.trim ? "trimmed" : "not trimmed");
  if (format.quote) parts.push_back(StrCat("quote ", PrintQuote(*format.quote)));
  if (format.encoding_errors) {
    parts.push_back(StrCat("encoding errors ", EncodingErrorsName(*format.encoding_errors)));
  }
  if (format.missing) parts.push_back(StrCat("missing ", absl::StrJoin(*format.missing, " ")));
  return absl::StrJoin(parts, ", ");
}

DataFormat NameColumns(DataFormat format, const Schema& inputs) {
  if (format.has_header() || !format.columns.empty()) return format;
  for (const Field& field : inputs.fields) format.columns.push_back(field.name);
  format.header = false;
  return format;
}

Schema WithMissing(Schema schema, const DataFormat& format) {
  if (!format.missing) return schema;
  for (Field& field : schema.fields) {
    for (const std::string& mark : *format.missing) {
      const bool known = std::ranges::find(field.missing, mark) != field.missing.end();
      if (!known) field.missing.push_back(mark);
    }
  }
  return schema;
}

absl::StatusOr<FileFormat> ParseFileFormat(std::string_view text) {
  return FindByName(kFileFormats, "supported format of data", text);
}

absl::StatusOr<char> ParseDelimiter(std::string_view text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text == "\\x01" || text == "^A") return '\x01';
  if (text.size() == 1) return text[0];
  return absl::InvalidArgumentError(
      StrCat("'", text, "' is not a delimiter: give one character, tab, or ^A (Hive's)"));
}

absl::StatusOr<char> ParseQuote(std::string_view text) {
  if (text == "none") return '\0';
  if (text == "\"" || text == "'") return text[0];
  return absl::InvalidArgumentError(
      StrCat("'", text, "' is not a quote: give \", ' or, for cells without quotes, none"));
}

absl::StatusOr<EncodingErrors> ParseEncodingErrors(std::string_view text) {
  return FindByName(kEncodingErrors, "way to read what is not UTF-8", text);
}

std::string PrintDelimiter(char delimiter) {
  if (delimiter == '\x01') return "^A";
  return delimiter == '\t' ? "tab" : std::string(1, delimiter);
}

std::string PrintQuote(char quote) { return quote == '\0' ? "none" : std::string(1, quote); }

absl::Status CheckDataFormat(const DataFormat& format) {
  MUSTER_RETURN_IF_ERROR(CheckCsvOptions(format.csv()));
  std::set<std::string> seen;
  for (const std::string& name : format.columns) {
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(StrCat("columns: '", name, "' is named twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::formats
