#include "muster/data/profile/find_columns.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "muster/data/column_names.h"
#include "muster/data/file_rules.h"
#include "muster/data/source.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "nlohmann/json.hpp"

namespace muster::data {
namespace {

using formats::FileFormat;
using formats::ValueType;
using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kSampledRecords = 1000;

bool IsNumber(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t+");
  if (first == std::string_view::npos) return false;
  text.remove_prefix(first);
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return stop == text.data() + text.size() && error == std::errc();
}

// Reads the first rows, including the header. Rows with another number of cells are not reported
// here, but by the reader.
absl::StatusOr<Rows> ReadRows(io::FileSystem& files, const std::string& path,
                              formats::CsvOptions csv) {
  csv.header = false;
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const auto reader, formats::CsvRowReader::Open(std::move(file), csv));
  Rows rows;
  std::vector<std::string_view> cells;
  std::string scratch;
  std::string_view row;
  while (rows.size() < kSampledRecords) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) break;
    if (!formats::SplitCsvRow(row, csv, &cells, &scratch).ok()) continue;
    if (rows.empty() || rows[0].size() == cells.size()) {
      rows.emplace_back(cells.begin(), cells.end());
    }
  }
  return rows;
}

formats::Schema ListSchema(const std::vector<std::pair<std::string, ValueType>>& columns) {
  formats::Schema schema;
  for (const auto& [name, type] : columns) {
    formats::Field& field = schema.fields.emplace_back();
    field.name = name;
    field.type = type;
    field.list = true;
    field.separator = '\0';  // a cell is one value
  }
  return schema;
}

absl::Status FindCsvColumns(io::FileSystem& files, const std::string& path, const FileRules& rules,
                            const std::string& wanted, FoundColumns* found) {
  formats::CsvOptions csv = rules.csv;
  MUSTER_ASSIGN_OR_RETURN(Rows rows, ReadRows(files, path, csv));
  if (rows.empty()) return absl::InvalidArgumentError(StrCat(path, ": there are no rows"));
  formats::DataFormat& format = found->format;
  if (!format.trim && NeedsTrim(rows)) {
    format.trim = csv.trim = true;
    MUSTER_ASSIGN_OR_RETURN(rows, ReadRows(files, path, csv));
  }
  if (format.columns.empty()) {
    const bool header = format.header.value_or(HasHeader(rows, wanted));
    if (!header) {
      for (size_t i = 1; i <= rows[0].size(); ++i) format.columns.push_back(StrCat("c", i));
    }
    csv.header = header;
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ReadColumnNames(std::move(file), csv, format.columns, {}));
  std::vector<std::pair<std::string, ValueType>> columns;
  std::map<std::string, int, std::less<>> times;
  for (const std::string& name : names) ++times[name];
  for (const std::string& name : names) {
    if (times[name] == 1 && !name.empty()) {
      columns.emplace_back(name, ValueType::kString);
    } else if (times[name] > 0) {
      found->left_out.push_back(name);
      times[name] = 0;
    }
  }
  found->schema = ListSchema(columns);
  return absl::OkStatus();
}

// The fields of records and their types. Fields that have two types are in `conflicts`.
struct Fields {
  std::map<std::string, ValueType> types;
  std::set<std::string> conflicts;

  void Add(const std::string& name, ValueType type) {
    const auto [found, is_new] = types.emplace(name, type);
    const auto is_number = [](ValueType t) { return t != ValueType::kString; };
    if (is_new || found->second == type) return;
    if (is_number(type) && is_number(found->second)) {
      found->second = ValueType::kFloat;
    } else {
      conflicts.insert(name);
    }
  }
};

void AddExample(std::string_view record, Fields* fields) {
  const auto features = formats::DescribeExample(record);
  if (!features.ok()) return;  // the reader reports where it is
  for (const formats::FeatureText& feature : *features) {
    if (feature.kind == "int64") fields->Add(feature.name, ValueType::kInt);
    if (feature.kind == "float") fields->Add(feature.name, ValueType::kFloat);
    if (feature.kind == "bytes") fields->Add(feature.name, ValueType::kString);
  }
}

void AddJsonValue(const std::string& name, const nlohmann::json& value, Fields* fields) {
  if (value.is_array()) {
    for (const nlohmann::json& element : value) AddJsonValue(name, element, fields);
  } else if (value.is_string()) {
    fields->Add(name, ValueType::kString);
  } else if (value.is_number_float()) {
    fields->Add(name, ValueType::kFloat);
  } else if (value.is_number() || value.is_boolean()) {
    fields->Add(name, ValueType::kInt);
  } else if (value.is_object()) {
    fields->Add(name, ValueType::kString);
    fields->conflicts.insert(name);
  }
}

void AddJson(std::string_view record, Fields* fields) {
  const auto object = nlohmann::json::parse(record, nullptr, false);
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) AddJsonValue(name, value, fields);
}

absl::Status FindRecordFields(io::FileSystem& files, const std::vector<std::string>& patterns,
                              FoundColumns* found) {
  MUSTER_ASSIGN_OR_RETURN(const auto source,
                          OpenSource(files, {.patterns = patterns, .format = found->format}));
  Fields fields;
  size_t seen = 0;
  for (size_t chunk = 0; chunk < source->chunks().size() && seen < kSampledRecords; ++chunk) {
    MUSTER_ASSIGN_OR_RETURN(const auto stream, source->Stream(chunk));
    while (seen < kSampledRecords) {
      MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<const Chunk> piece, stream->Next());
      if (piece == nullptr) break;
      for (const std::string_view record : piece->records) {
        if (++seen > kSampledRecords) break;
        found->type == FileFormat::kTfRecord ? AddExample(record, &fields)
                                             : AddJson(record, &fields);
      }
    }
  }
  found->left_out.assign(fields.conflicts.begin(), fields.conflicts.end());
  std::erase_if(fields.types,
                [&fields](const auto& field) { return fields.conflicts.contains(field.first); });
  found->schema = ListSchema({fields.types.begin(), fields.types.end()});
  if (!found->schema.fields.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(source->files()[0], ": its first records have no fields with values",
             found->type == FileFormat::kTfRecord ? "; are they tf.Examples?" : ""));
}

}  // namespace

bool HasHeader(const Rows& rows, const std::string& wanted) {
  const std::vector<std::string>& first = rows[0];
  if (!wanted.empty() && std::ranges::find(first, wanted) != first.end()) return true;
  if (rows.size() == 1) return std::ranges::none_of(first, IsNumber);
  if (std::ranges::any_of(first, IsNumber)) return false;
  bool any_numbers = false, text_over_numbers = false, again = false, any_empty = false;
  for (size_t c = 0; c < first.size(); ++c) {
    size_t numbers = 0, values = 0;
    for (size_t r = 1; r < rows.size(); ++r) {
      values += rows[r][c].empty() ? 0 : 1;
      numbers += IsNumber(rows[r][c]) ? 1 : 0;
      again = again || (!first[c].empty() && rows[r][c] == first[c]);
    }
    const bool is_number = numbers > 0 && numbers * 2 >= values;
    any_numbers = any_numbers || is_number;
    // Short texts do not count: "?" and "NA" also occur in a first row of data.
    text_over_numbers = text_over_numbers || (is_number && first[c].size() > 2);
    any_empty = any_empty || first[c].empty();
  }
  const std::set<std::string> words(first.begin(), first.end());
  const bool are_names = words.size() == first.size() && !again;
  if (any_numbers) return text_over_numbers || (are_names && !any_empty);
  return are_names && !any_empty;
}

bool NeedsTrim(const Rows& rows) {
  size_t cells = 0, with_space = 0;
  for (const std::vector<std::string>& row : rows) {
    for (size_t c = 1; c < row.size(); ++c) {
      cells += row[c].empty() ? 0 : 1;
      with_space += row[c].starts_with(' ') ? 1 : 0;
    }
  }
  return cells > 0 && with_space * 2 > cells;
}

absl::StatusOr<FoundColumns> FindColumns(io::FileSystem& files,
                                         const std::vector<std::string>& patterns,
                                         const formats::DataFormat& given,
                                         const std::string& wanted) {
  MUSTER_RETURN_IF_ERROR(formats::CheckDataFormat(given));
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto matches, io::Glob(files, pattern));
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  if (paths.empty()) return absl::InvalidArgumentError("no data was given");
  MUSTER_ASSIGN_OR_RETURN(const SetRules rules, FindSetRules(files, paths, given));
  FoundColumns found = {.type = rules.files[0].format, .format = given, .note = rules.note};
  if (found.type != FileFormat::kCsv) {
    MUSTER_RETURN_IF_ERROR(FindRecordFields(files, patterns, &found));
    return found;
  }
  size_t first = 0;
  while (first + 1 < paths.size()) {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(paths[first]));
    if (info.size > 0) break;
    ++first;
  }
  MUSTER_RETURN_IF_ERROR(FindCsvColumns(files, paths[first], rules.files[first], wanted, &found));
  return found;
}

}  // namespace muster::data
