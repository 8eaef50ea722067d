#include <memory>
#include <span>

#include "CLI/CLI.hpp"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/conversion.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/reader.h"
#include "muster/data/source_set.h"
#include "muster/files/file_systems.h"
#include "muster/formats/data_format.h"
#include "muster/model/spec/model_spec.h"

namespace muster::cli {
namespace {

constexpr int kBatchRows = 4096;

struct FromParquetFlags {
  std::vector<std::string> inputs;
  std::string spec, python;
  ConversionFlags conversion;
};

absl::StatusOr<data::ConversionCounts> ConvertParquet(io::FileSystem& files,
                                                      const FromParquetFlags& flags,
                                                      const formats::Schema& schema,
                                                      const data::ConversionProgress& progress) {
  const data::SourceSpec spec = {.patterns = flags.inputs};
  const auto set = ParquetData(flags.python);
  MUSTER_ASSIGN_OR_RETURN(auto sources, set->OpenShards(spec, std::span(&spec.shard, 1), 0));
  MUSTER_ASSIGN_OR_RETURN(
      const auto reader,
      data::BatchReader::Create(std::move(sources.front()), schema, {.batch_size = kBatchRows}));
  return ConvertColumns(
      files, schema, flags.conversion.output(),
      [&](formats::Columns* columns) { return reader->Next(columns); }, progress);
}

absl::Status RunFromParquet(const FromParquetFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckOut(*files, flags.conversion));
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, model::LoadModelSpec(*files, flags.spec));
  const formats::Schema schema = formats::WithMissing(model.features.schema, model.format);
  return RunConversion(flags.conversion, "rows", [&](const data::ConversionProgress& progress) {
    return ConvertParquet(*files, flags, schema, progress);
  });
}

}  // namespace

void AddRecordsFromParquet(CLI::App& records) {
  const auto flags = std::make_shared<FromParquetFlags>();
  CLI::App* verb = records.add_subcommand("from-parquet",
                                          "Convert Parquet files to TFRecord shards of tf.Example");
  verb->footer(
      "Needs a Python with the package pyarrow. The columns that the model file names are\n"
      "read; one that the files lack is taken from their folders (dt=2026-11-20/).\n"
      "Example:\n"
      "  muster records from-parquet 'clicks/*/*.parquet' --spec clicks.yaml --out data\n"
      "    --shards 5");
  verb->add_option("inputs", flags->inputs, "Parquet files, folders or globs")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--spec", flags->spec, "Model file whose inputs say the types of the columns")
      ->required()
      ->type_name("SPEC");
  verb->add_option(
          "--python", flags->python,
          "The Python that has pyarrow (default: the variable MUSTER_PARQUET_PYTHON, or python3)")
      ->type_name("PROGRAM");
  AddConversionFlags(verb, &flags->conversion);
  verb->callback([flags] { FailUnlessOk(RunFromParquet(*flags)); });
}

}  // namespace muster::cli
