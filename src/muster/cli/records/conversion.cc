#include "muster/cli/records/conversion.h"

#include <cstdio>
#include <map>

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/next_steps.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/records/verbs.h"
#include "muster/formats/example.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

void PrintConversion(const ConversionFlags& flags, const std::string& rows,
                     const data::ConversionCounts& counts, double seconds) {
  if (flags.json) {
    const nlohmann::ordered_json object = {
        {"event", "converted"},  {"rows", counts.rows},      {"bad_records", counts.bad_records},
        {"bytes", counts.bytes}, {"shards", flags.shards},   {"seconds", seconds},
        {"out", flags.folder},   {"lacking", counts.lacking}};
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  for (const std::string& name : counts.lacking) {
    std::printf("The data has no column '%s': the records are for muster predict\n", name.c_str());
  }
  std::string bad;
  if (counts.bad_records > 0) {
    bad = StrCat(", left out ", GroupDigits(counts.bad_records), " bad ones");
  }
  std::printf("Converted %s %s (%sB%s) to %d part file%s in %s, %s %s/s\n",
              GroupDigits(counts.rows).c_str(), rows.c_str(),
              FormatCount(static_cast<double>(counts.bytes)).c_str(), bad.c_str(), flags.shards,
              flags.shards == 1 ? "" : "s", flags.folder.c_str(),
              FormatCount(static_cast<double>(counts.rows) / seconds).c_str(), rows.c_str());
}

}  // namespace

data::PartFilesSpec ConversionFlags::output() const {
  static const std::map<std::string, formats::Compression> kCompressions = {
      {"none", formats::Compression::kNone},
      {"gzip", formats::Compression::kGzip},
      {"zlib", formats::Compression::kZlib}};
  return {.folder = folder,
          .files = shards,
          .compression = kCompressions.at(compression),
          .overwrite = overwrite};
}

void AddConversionFlags(CLI::App* verb, ConversionFlags* flags) {
  verb->add_option("--out", flags->folder, "Folder of the part files")
      ->required()
      ->type_name("DIR");
  verb->add_option("--shards", flags->shards, "Number of files")
      ->check(CLI::Range(1, data::kMaxPartFiles))
      ->capture_default_str();
  verb->add_option("--compression", flags->compression, "none, gzip or zlib")
      ->check(CLI::IsMember({"none", "gzip", "zlib"}))
      ->capture_default_str();
  verb->add_flag("--overwrite", flags->overwrite,
                 "Remove part files of other sets from the folder");
  verb->add_flag("--json", flags->json, "The result as JSON");
  verb->add_flag("--quiet", flags->quiet, "No progress");
}

absl::Status CheckOut(io::FileSystem& files, const ConversionFlags& flags) {
  return CheckPlace(files, {.flag = "--out", .path = flags.folder, .is_folder = true});
}

absl::Status RunConversion(
    const ConversionFlags& flags, const std::string& rows,
    const std::function<absl::StatusOr<data::ConversionCounts>(const data::ConversionProgress&)>&
        convert) {
  const InterruptScope interrupt;
  double seconds = 0;
  data::ConversionCounts counts;
  {
    RowProgress progress("convert", rows, flags.quiet || flags.json);
    MUSTER_ASSIGN_OR_RETURN(counts, convert([&](const data::ConversionCounts& so_far) {
                              progress.Update(so_far.rows);
                              return InterruptScope::requested()
                                         ? absl::CancelledError("stopped; nothing was written")
                                         : absl::OkStatus();
                            }));
    seconds = progress.seconds();
  }
  PrintConversion(flags, rows, counts, seconds);
  if (!flags.json && !flags.quiet) {
    SayNextSteps({StrCat("muster records stats '", flags.folder, "/part-*' --spec SPEC"),
                  StrCat("muster train SPEC model --train '", flags.folder, "/part-*'")});
  }
  return absl::OkStatus();
}

absl::StatusOr<data::ConversionCounts> ConvertColumns(io::FileSystem& files,
                                                      const formats::Schema& schema,
                                                      const data::PartFilesSpec& output,
                                                      const NextColumns& next,
                                                      const data::ConversionProgress& progress) {
  MUSTER_ASSIGN_OR_RETURN(auto writer, data::PartFileWriter::Create(files, output));
  const formats::ExampleEncoder encoder(schema);
  formats::Columns columns(schema);
  data::ConversionCounts counts;
  std::string record;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, next(&columns));
    if (!more) break;
    for (int row = 0; row < columns.rows(); ++row) {
      encoder.Encode(columns, row, &record);
      MUSTER_RETURN_IF_ERROR(writer->Write(record));
    }
    counts.rows += static_cast<uint64_t>(columns.rows());
    if (progress) MUSTER_RETURN_IF_ERROR(progress(counts));
  }
  MUSTER_RETURN_IF_ERROR(writer->Commit());
  counts.bytes = writer->file_bytes();
  return counts;
}

}  // namespace muster::cli
