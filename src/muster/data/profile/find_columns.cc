#include "muster/data/profile/find_columns.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/data/column_names.h"
#include "muster/data/file_rules.h"
#include "muster/data/source_set.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/io/path_scheme.h"
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

// `first` is the first row, in which cells of a header may be empty.
void NoteUnnamed(const std::string& path, const std::vector<std::string>& first,
                 const std::vector<std::string>& names, FoundColumns* found) {
  if (!found->format.columns.empty()) return;
  std::vector<std::string> unnamed;
  for (size_t i = 0; i < std::min(first.size(), names.size()); ++i) {
    if (first[i].empty()) unnamed.push_back(names[i]);
  }
  if (unnamed.empty()) return;
  found->notes.push_back(StrCat("the header of ", path, " has no name for column ",
                                absl::StrJoin(unnamed, ", "), ", which is called by its place"));
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
  NoteUnnamed(path, rows[0], names, found);
  std::vector<std::pair<std::string, ValueType>> columns;
  std::map<std::string, int, std::less<>> times;
  for (const std::string& name : names) ++times[name];
  for (const std::string& name : names) {
    if (times[name] == 1) {
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
  std::set<std::string> quoted;  // those that have numbers in quotes, which are read as numbers

  void AddQuoted() {
    for (const std::string& name : quoted) {
      const auto [found, is_new] = types.emplace(name, ValueType::kString);
      if (!is_new && found->second == ValueType::kInt) found->second = ValueType::kFloat;
    }
  }

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
    if (IsNumber(value.get_ref<const std::string&>())) {
      fields->quoted.insert(name);
    } else {
      fields->Add(name, ValueType::kString);
    }
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

absl::Status FindRecordFields(const RecordSource& source, FoundColumns* found) {
  Fields fields;
  size_t seen = 0;
  for (size_t chunk = 0; chunk < source.chunks().size() && seen < kSampledRecords; ++chunk) {
    MUSTER_ASSIGN_OR_RETURN(const auto stream, source.Stream(chunk));
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
  fields.AddQuoted();
  found->left_out.assign(fields.conflicts.begin(), fields.conflicts.end());
  std::erase_if(fields.types,
                [&fields](const auto& field) { return fields.conflicts.contains(field.first); });
  found->schema = ListSchema({fields.types.begin(), fields.types.end()});
  if (!found->schema.fields.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(source.files()[0], ": its first records have no fields with values",
             found->type == FileFormat::kTfRecord ? "; are they tf.Examples?" : ""));
}

FoundColumns TakeKnownColumns(const std::vector<KnownColumn>& known,
                              const formats::DataFormat& given) {
  FoundColumns found = {.is_described = true, .format = given};
  std::vector<std::pair<std::string, ValueType>> columns;
  for (const KnownColumn& column : known) {
    if (!column.type) {
      found.left_out.push_back(column.name);
      continue;
    }
    columns.emplace_back(column.name, *column.type);
    if (column.is_date) found.dates.push_back(column.name);
  }
  found.schema = ListSchema(columns);
  return found;
}

// Of records in partitions.
absl::Status FindSourceColumns(const RecordSource& source, FoundColumns* found) {
  const formats::DataFormat format = source.format();
  found->type = format.type.value_or(found->type);
  if (found->type != FileFormat::kCsv) return FindRecordFields(source, found);
  std::vector<std::pair<std::string, ValueType>> columns;
  for (const std::string& name : format.columns) columns.emplace_back(name, ValueType::kString);
  found->schema = ListSchema(columns);
  return absl::OkStatus();  // a reader says that cells without names need some
}

}  // namespace

bool HasHeader(const Rows& rows, const std::string& wanted) {
  const std::vector<std::string>& first = rows[0];
  if (!wanted.empty() && std::ranges::find(first, wanted) != first.end()) return true;
  if (rows.size() == 1) return std::ranges::none_of(first, IsNumber);
  if (std::ranges::any_of(first, IsNumber)) return false;
  bool any_numbers = false, all_numbers = true, text_over_numbers = false, again = false,
       any_empty = false;
  for (size_t c = 0; c < first.size(); ++c) {
    size_t numbers = 0, values = 0;
    for (size_t r = 1; r < rows.size(); ++r) {
      values += rows[r][c].empty() ? 0 : 1;
      numbers += IsNumber(rows[r][c]) ? 1 : 0;
      again = again || (!first[c].empty() && rows[r][c] == first[c]);
    }
    const bool is_number = numbers > 0 && numbers * 2 >= values;
    any_numbers = any_numbers || is_number;
    all_numbers = all_numbers && is_number;
    // Short texts do not count: "?" and "NA" also occur in a first row of data.
    text_over_numbers = text_over_numbers || (is_number && first[c].size() > 2);
    any_empty = any_empty || (c > 0 && first[c].empty());  // an index may have no name
  }
  const std::set<std::string> words(first.begin(), first.end());
  const bool are_names = words.size() == first.size() && !again;
  if (any_numbers) return text_over_numbers || ((are_names || all_numbers) && !again && !any_empty);
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
                                         const SourceSchemes& schemes, const std::string& wanted) {
  MUSTER_RETURN_IF_ERROR(formats::CheckDataFormat(given));
  if (patterns.empty()) return absl::InvalidArgumentError("no data was given");
  MUSTER_ASSIGN_OR_RETURN(const auto set, ChooseSourceSet(files, schemes, patterns));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<KnownColumn> known, set->DescribeColumns(patterns));
  if (!known.empty()) return TakeKnownColumns(known, given);
  FoundColumns found = {.format = given};
  if (schemes.contains(io::PathScheme(patterns[0]))) {
    MUSTER_ASSIGN_OR_RETURN(
        const auto source,
        OpenSource(files, {.patterns = patterns, .format = given, .schemes = schemes}));
    MUSTER_RETURN_IF_ERROR(FindSourceColumns(*source, &found));
    return found;
  }
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto matches, io::Glob(files, pattern));
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  MUSTER_ASSIGN_OR_RETURN(const SetRules rules, FindSetRules(files, paths, given));
  found.type = rules.files[0].format;
  if (!rules.note.empty()) found.notes.push_back(rules.note);
  if (found.type != FileFormat::kCsv) {
    MUSTER_ASSIGN_OR_RETURN(const auto source,
                            OpenSource(files, {.patterns = patterns, .format = found.format}));
    MUSTER_RETURN_IF_ERROR(FindRecordFields(*source, &found));
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
