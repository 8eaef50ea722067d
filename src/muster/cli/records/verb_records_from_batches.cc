#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/conversion.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/files/file_systems.h"
#include "muster/io/local_file_system.h"

namespace muster::cli {
namespace {

struct FromBatchesFlags {
  std::string input = "-";
  ConversionFlags conversion;
};

absl::Status RunFromBatches(const FromBatchesFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckOut(*files, flags.conversion));
  const std::string path = flags.input == "-" ? std::string(io::kStandardInput) : flags.input;
  return RunConversion(
      flags.conversion, "rows",
      [&](const data::ConversionProgress& progress) -> absl::StatusOr<data::ConversionCounts> {
        MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                                files->OpenForRead(path));
        MUSTER_ASSIGN_OR_RETURN(const auto stream, data::OpenWholeBatchStream(std::move(file)));
        return ConvertColumns(
            *files, stream.schema, flags.conversion.output(),
            [&](formats::Columns* columns) { return stream.reader->Next(columns); }, progress);
      });
}

}  // namespace

void AddRecordsFromBatches(CLI::App& records) {
  const auto flags = std::make_shared<FromBatchesFlags>();
  CLI::App* verb = records.add_subcommand(
      "from-batches", "Convert a program's batches to TFRecord shards of tf.Example");
  verb->footer(
      "A stream of batches (docs/formats/batch_stream.md) on standard input, or in a file. Each "
      "of\n"
      "its columns becomes a feature; a row without values in a list has an empty feature.\n"
      "The shards appear together at the end, or not at all. A stream without rows gives empty "
      "ones.\n"
      "Example:\n"
      "  program | muster records from-batches - --out data");
  verb->add_option("input", flags->input, "- for standard input, or NAME.batches")
      ->required()
      ->type_name("INPUT");
  AddConversionFlags(verb, &flags->conversion);
  verb->callback([flags] { FailUnlessOk(RunFromBatches(*flags)); });
}

}  // namespace muster::cli
