#include "muster/data/convert.h"

#include <utility>

#include "muster/formats/columns.h"
#include "muster/formats/example.h"

namespace muster::data {
namespace {

constexpr uint64_t kRowsBetweenReports = 2048;

class CsvConversion {
 public:
  CsvConversion(const ConversionSpec& spec, const ConversionProgress& progress)
      : spec_(spec), progress_(progress), columns_(spec.schema), encoder_(spec.schema) {}

  absl::Status ConvertFile(io::FileSystem& files, const std::string& path, ShardWriter* writer) {
    MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                            files.OpenForRead(path));
    MUSTER_ASSIGN_OR_RETURN(auto reader, formats::CsvRowReader::Open(std::move(file), spec_.csv));
    auto decoder = formats::NewCsvDecoder(spec_.schema, reader->header(), spec_.csv);
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
        return Annotate(decoded, StrCat(path, ":", reader->line()));
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
  const ConversionProgress& progress_;
  formats::Columns columns_;  // one row
  const formats::ExampleEncoder encoder_;
  std::string record_;
  ConversionCounts counts_;
};

}  // namespace

absl::StatusOr<ConversionCounts> ConvertCsv(io::FileSystem& files, const ConversionSpec& spec,
                                            const ConversionProgress& progress) {
  std::vector<std::string> paths;
  for (const std::string& input : spec.inputs) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, input));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) return absl::InvalidArgumentError("no input files were given");
  MUSTER_ASSIGN_OR_RETURN(auto writer, ShardWriter::Create(files, spec.output));
  CsvConversion conversion(spec, progress);
  for (const std::string& path : paths) {
    MUSTER_RETURN_IF_ERROR(conversion.ConvertFile(files, path, writer.get()));
  }
  if (conversion.counts().rows == 0) {
    const uint64_t bad = conversion.counts().bad_records;
    return absl::InvalidArgumentError(
        bad == 0 ? StrCat(paths[0], ": no rows behind the header")
                 : StrCat(paths[0], ": none of its ", bad, " rows fits the spec"));
  }
  MUSTER_RETURN_IF_ERROR(writer->Commit());
  conversion.counts().bytes = writer->file_bytes();
  return conversion.counts();
}

}  // namespace muster::data
