#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/conversion.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/convert.h"
#include "muster/files/file_systems.h"
#include "muster/model/spec/model_spec.h"

namespace muster::cli {
namespace {

struct FromCsvFlags {
  std::vector<std::string> inputs;
  std::string spec;
  formats::DataFormat format;
  uint64_t max_bad_records = 0;
  ConversionFlags conversion;
};

absl::Status RunFromCsv(const FromCsvFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckOut(*files, flags.conversion));
  data::ConversionSpec spec;
  spec.inputs = flags.inputs;
  spec.output = flags.conversion.output();
  spec.max_bad_records = flags.max_bad_records;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, model::LoadModelSpec(*files, flags.spec));
  spec.schema = model.features.schema;
  spec.format = formats::NameColumns(formats::Override(model.format, flags.format), spec.schema);
  spec.may_lack = model.LabelInputs();
  spec.note = PrintNotesOnce();
  return RunConversion(flags.conversion, "rows", [&](const data::ConversionProgress& progress) {
    return data::ConvertCsv(*files, spec, progress);
  });
}

}  // namespace

void AddRecordsFromCsv(CLI::App& records) {
  const auto flags = std::make_shared<FromCsvFlags>();
  CLI::App* verb =
      records.add_subcommand("from-csv", "Convert CSV files to TFRecord shards of tf.Example");
  verb->footer(
      "Rows are dealt round robin to part-00000-of-0000N.tfrecord (.gz, .zlib when compressed).\n"
      "The shards appear together at the end, or not at all.\n"
      "Rows without the label or the weight, such as those to predict, give shards without them.\n"
      "Example:\n"
      "  muster records from-csv train.csv --spec titanic.yaml --out data --shards 5");
  verb->add_option("inputs", flags->inputs,
                   "CSV files or globs, plain or compressed (GZIP, Zstandard)")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--spec", flags->spec, "Model file whose inputs say the types of the columns")
      ->required()
      ->type_name("SPEC");
  AddFormatFlags(*verb, &flags->format);
  verb->add_option("--max-bad-records", flags->max_bad_records,
                   "Leave out and count up to N rows that do not fit the spec")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  AddConversionFlags(verb, &flags->conversion);
  verb->callback([flags] { FailUnlessOk(RunFromCsv(*flags)); });
}

}  // namespace muster::cli
