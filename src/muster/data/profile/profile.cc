#include "muster/data/profile/profile.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "muster/data/profile/find_columns.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
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
      const uint32_t begin = column.offsets[row], end = column.offsets[row + 1];
      for (uint32_t i = begin; i < end; ++i) {
        profiler.Add(ValueText(column, schema.fields[c].type, i, &scratch));
      }
      profiler.EndRow(end - begin);
    }
  }
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

absl::StatusOr<Profile> ProfileData(io::FileSystem& files, const ProfileSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(FoundColumns found,
                          FindColumns(files, spec.patterns, spec.format, spec.wanted));
  if (spec.note && !found.note.empty()) spec.note(found.note);
  const SourceSpec source_spec = {.patterns = spec.patterns, .format = found.format};
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const RecordSource> source,
                          OpenSource(files, source_spec, spec.max_bad_records));
  MUSTER_ASSIGN_OR_RETURN(
      const auto reader,
      BatchReader::Create(source, found.schema,
                          {.batch_size = kBatchRows, .max_bad_records = spec.max_bad_records}));
  std::vector<ColumnProfiler> profilers;
  for (const formats::Field& field : found.schema.fields) {
    profilers.emplace_back(field.name, field.type);
  }
  Profile profile = {.type = found.type, .format = found.format, .left_out = found.left_out};
  formats::Columns rows(found.schema);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&rows));
    if (!more) break;
    AddRows(rows, found.schema, &profilers);
    profile.rows += static_cast<uint64_t>(rows.rows());
    if (spec.progress) MUSTER_RETURN_IF_ERROR(spec.progress(profile.rows));
  }
  profile.bad_rows = reader->bad_rows();
  for (const ColumnProfiler& profiler : profilers) profile.columns.push_back(profiler.Finish());
  return profile;
}

}  // namespace muster::data
