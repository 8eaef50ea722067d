#include "muster/data/profile/profile.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "muster/data/file_rules.h"
#include "muster/data/profile/find_columns.h"
#include "muster/data/profile/list_cells.h"
#include "muster/data/reader.h"
#include "muster/data/source_set.h"
#include "muster/formats/columns.h"

namespace muster::data {
namespace {

constexpr int kBatchRows = 512;

// Returns value `i` of a column as text.
std::string_view ValueText(const formats::Column& column, formats::ValueType type, uint32_t i,
                           std::string* scratch) {
  switch (type) {
    case formats::ValueType::kInt:
      *scratch = StrCat(column.ints[i]);
      return *scratch;
    case formats::ValueType::kFloat:
      *scratch = StrCat(column.floats[i]);
      return *scratch;
    case formats::ValueType::kString:
      break;
  }
  return column.strings[i];
}

void AddRows(const formats::Columns& rows, const formats::Schema& schema,
             std::vector<ColumnProfiler>* profilers) {
  std::string scratch;
  for (size_t c = 0; c < profilers->size(); ++c) {
    const formats::Column& column = rows.column(static_cast<int>(c));
    ColumnProfiler& profiler = (*profilers)[c];
    for (int row = 0; row < rows.rows(); ++row) {
      uint64_t values = 0;
      for (uint32_t i = column.offsets[row]; i < column.offsets[row + 1]; ++i) {
        const std::string_view text = ValueText(column, schema.fields[c].type, i, &scratch);
        if (text.empty()) continue;  // no value, in CSV and in JSON lines
        profiler.Add(text);
        ++values;
      }
      profiler.EndRow(values);
    }
  }
}

// Whether text that looks like numbers or dates is read as text alone. Numbers in the bytes of
// tf.Examples are, other than those in the text of JSON lines.
bool IsOnlyText(const FoundColumns& found, const ColumnProfile& column) {
  if (found.is_described) {
    return column.kind != ColumnProfile::Kind::kNothing &&
           std::ranges::find(found.dates, column.name) == found.dates.end();
  }
  return found.type == formats::FileFormat::kTfRecord && column.is_number();
}

}  // namespace

const ColumnProfile* Profile::Find(const std::string& name) const {
  const auto found = std::ranges::find(columns, name, &ColumnProfile::name);
  return found == columns.end() ? nullptr : &*found;
}

std::vector<std::string> Profile::names() const {
  std::vector<std::string> names;
  for (const ColumnProfile& column : columns) names.push_back(column.name);
  return names;
}

std::string_view Profile::format_name() const {
  return is_parquet ? kParquetKind : formats::FileFormatName(type);
}

std::string_view Profile::format_words() const {
  return is_parquet ? "Parquet" : FormatWords(type);
}

absl::StatusOr<Profile> ProfileData(io::FileSystem& files, const ProfileSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(FoundColumns found, FindColumns(files, spec.patterns, spec.format,
                                                          spec.schemes, spec.wanted));
  if (spec.note) {
    for (const std::string& note : found.notes) spec.note(note);
  }
  found.schema = formats::WithMissing(std::move(found.schema), found.format);
  const SourceSpec source_spec = {
      .patterns = spec.patterns, .format = found.format, .schemes = spec.schemes};
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const RecordSource> source,
                          OpenSource(files, source_spec, spec.max_bad_records));
  MUSTER_ASSIGN_OR_RETURN(
      const auto reader,
      BatchReader::Create(source, found.schema,
                          {.batch_size = kBatchRows, .max_bad_records = spec.max_bad_records}));
  std::vector<ColumnProfiler> profilers;
  for (const formats::Field& field : found.schema.fields) {
    profilers.emplace_back(field.name, field.type, spec.dates);
  }
  Profile profile = {.type = found.type,
                     .is_parquet = found.is_described,
                     .format = found.format,
                     .left_out = found.left_out};
  formats::Columns rows(found.schema);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&rows));
    if (!more) break;
    AddRows(rows, found.schema, &profilers);
    profile.rows += static_cast<uint64_t>(rows.rows());
    if (spec.progress) MUSTER_RETURN_IF_ERROR(spec.progress(profile.rows));
  }
  profile.bad_rows = reader->bad_rows();
  for (const ColumnProfiler& profiler : profilers) {
    ColumnProfile& column = profile.columns.emplace_back(profiler.Finish());
    if (column.stored == formats::ValueType::kString && IsOnlyText(found, column)) {
      column.kind = ColumnProfile::Kind::kText;
      column.numbers = {};
    }
    const bool has_cells = found.type == formats::FileFormat::kCsv && !found.is_described;
    if (has_cells && column.name != spec.wanted) FindListCells(&column);
  }
  return profile;
}

}  // namespace muster::data
