#include "muster/data/convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

#include "muster/base/nearest.h"
#include "muster/data/column_names.h"
#include "muster/data/file_rules.h"
#include "muster/data/source.h"
#include "muster/formats/columns.h"
#include "muster/formats/example.h"

namespace muster::data {
namespace {

constexpr uint64_t kRowsBetweenReports = 2048;

class CsvConversion {
 public:
  CsvConversion(const ConversionSpec& spec, const formats::Schema& schema,
                const ConversionProgress& progress)
      : spec_(spec), schema_(schema), progress_(progress), columns_(schema_), encoder_(schema_) {}

  absl::Status ConvertFile(io::FileSystem& files, const std::string& path, const FileRules& rules,
                           PartFileWriter* writer) {
    MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                            files.OpenForRead(path));
    MUSTER_ASSIGN_OR_RETURN(const auto names,
                            ReadColumnNames(file, rules.csv, spec_.format.columns, spec_.may_lack));
    MUSTER_ASSIGN_OR_RETURN(auto reader, formats::CsvRowReader::Open(std::move(file), rules.csv));
    auto decoder = formats::NewCsvDecoder(schema_, names, rules.csv);
    if (!decoder.ok()) return Annotate(decoder.status(), path);
    while (true) {
      std::string_view row;
      MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
      if (!more) return Report();
      columns_.Clear();
      const absl::Status decoded = (*decoder)->Decode(row, &columns_);
      if (decoded.ok()) {
        encoder_.Encode(columns_, 0, &record_);
        MUSTER_RETURN_IF_ERROR(writer->Write(record_));
        ++counts_.rows;
      } else if (++counts_.bad_records > spec_.max_bad_records) {
        return TooManyBad(Annotate(decoded, StrCat(path, ":", reader->line())),
                          spec_.max_bad_records);
      }
      if ((counts_.rows + counts_.bad_records) % kRowsBetweenReports == 0) {
        MUSTER_RETURN_IF_ERROR(Report());
      }
    }
  }

  ConversionCounts& counts() { return counts_; }

 private:
  absl::Status Report() const { return progress_ ? progress_(counts_) : absl::OkStatus(); }

  const ConversionSpec& spec_;
  const formats::Schema schema_;
  const ConversionProgress& progress_;
  formats::Columns columns_;  // one row
  const formats::ExampleEncoder encoder_;
  std::string record_;
  ConversionCounts counts_;
};

absl::StatusOr<SetRules> FindCsvRules(io::FileSystem& files, const std::vector<std::string>& paths,
                                      const ConversionSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(SetRules rules, FindSetRules(files, paths, spec.format));
  if (rules.files[0].format == FileFormat::kCsv) return rules;
  return absl::InvalidArgumentError(
      StrCat(paths[0], ": this is ", FormatWords(rules.files[0].format),
             ", which needs no conversion: give it to train, evaluate or predict"));
}

// Whether one of `names` that is no field resembles `field`. A short name must be equal except for
// case, since any two short names resemble each other.
bool IsMisspelt(const std::string& field, const std::vector<std::string>& names,
                const formats::Schema& schema) {
  constexpr size_t kShort = 4;
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (schema.Find(name) < 0) others.push_back(name);
  }
  const std::string near = Nearest(field, others);
  return !near.empty() && (field.size() >= kShort || absl::EqualsIgnoreCase(near, field));
}

// Returns the fields of spec.may_lack that the file does not have, not even under a similar name.
absl::StatusOr<std::vector<std::string>> FindLacking(io::FileSystem& files, const std::string& path,
                                                     const FileRules& rules,
                                                     const ConversionSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const auto names, ReadColumnNames(std::move(file), rules.csv,
                                                            spec.format.columns, spec.may_lack));
  std::vector<std::string> lacking;
  for (const std::string& field : spec.may_lack) {
    const bool is_there = std::ranges::find(names, field) != names.end();
    const bool is_field = spec.schema.Find(field) >= 0;
    if (is_field && !is_there && !IsMisspelt(field, names, spec.schema)) lacking.push_back(field);
  }
  return lacking;
}

formats::Schema Without(formats::Schema schema, const std::vector<std::string>& fields) {
  std::erase_if(schema.fields, [&fields](const formats::Field& field) {
    return std::ranges::find(fields, field.name) != fields.end();
  });
  return schema;
}

}  // namespace

absl::StatusOr<ConversionCounts> ConvertCsv(io::FileSystem& files, const ConversionSpec& spec,
                                            const ConversionProgress& progress) {
  MUSTER_RETURN_IF_ERROR(formats::CheckDataFormat(spec.format));
  std::vector<std::string> paths;
  for (const std::string& input : spec.inputs) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, input));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) return absl::InvalidArgumentError("no input files were given");
  MUSTER_ASSIGN_OR_RETURN(const SetRules rules, FindCsvRules(files, paths, spec));
  if (spec.note && !rules.note.empty()) spec.note(rules.note);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> lacking,
                          FindLacking(files, paths[0], rules.files[0], spec));
  MUSTER_ASSIGN_OR_RETURN(auto writer, PartFileWriter::Create(files, spec.output));
  const formats::Schema schema = Without(formats::WithMissing(spec.schema, spec.format), lacking);
  CsvConversion conversion(spec, schema, progress);
  conversion.counts().lacking = lacking;
  for (size_t i = 0; i < paths.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(conversion.ConvertFile(files, paths[i], rules.files[i], writer.get()));
  }
  if (conversion.counts().rows == 0) {
    const uint64_t bad = conversion.counts().bad_records;
    const std::string none = spec.format.has_header() ? ": no rows after the header" : ": no rows";
    return absl::InvalidArgumentError(
        bad == 0 ? StrCat(paths[0], none)
                 : StrCat(paths[0], ": none of its ", bad, " rows fits the spec"));
  }
  MUSTER_RETURN_IF_ERROR(writer->Commit());
  conversion.counts().bytes = writer->file_bytes();
  return conversion.counts();
}

}  // namespace muster::data
