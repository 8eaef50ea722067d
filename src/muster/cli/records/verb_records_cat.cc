#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/feature_json.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/files/file_systems.h"
#include "muster/formats/batch_stream.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct CatFlags {
  std::vector<std::string> patterns;
  formats::DataFormat format;
  KafkaFlags kafka;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool json = false;
  std::string batches;  // a JSON object
};

constexpr int kBatchRows = 2048;

std::string Dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The features of a tf.Example: a list of values by name.
std::string PrintFeatures(const std::vector<formats::FeatureText>& features) {
  ordered_json object = ordered_json::object();
  for (const formats::FeatureText& feature : features) {
    object[feature.name] = MakeFeatureValues(feature);
  }
  return Dump(object);
}

void Print(const data::Chunk& chunk, size_t record, bool json) {
  const std::string_view bytes = chunk.records[record];
  const auto features = formats::DescribeExample(bytes);
  // A row of CSV can look like unknown fields of an Example, which itself has features if it is
  // longer than two bytes.
  const bool is_text =
      bytes.starts_with('{') || !features.ok() || (features->empty() && bytes.size() > 2);
  const std::string text = is_text ? std::string(bytes) : PrintFeatures(*features);
  if (json) {
    std::printf("%s\n", Dump({{"where", chunk.Where(record)}, {"record", text}}).c_str());
  } else {
    std::printf("%s\n", text.c_str());
  }
}

// The schema of {"NAME": "TYPE", ...}.
absl::StatusOr<formats::Schema> ParseColumns(const std::string& text) {
  const ordered_json object = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        StrCat("--batches '", text,
               "': a JSON object of columns is wanted, each int, float or "
               "string, such as {\"age\": \"float\", \"job\": \"string\"}"));
  };
  if (!object.is_object() || object.empty()) return wrong();
  formats::Schema schema;
  for (const auto& [name, type] : object.items()) {
    formats::Field field;
    field.name = name;
    field.list = true;
    field.separator = '\0';
    bool known = false;
    for (const auto value :
         {formats::ValueType::kInt, formats::ValueType::kFloat, formats::ValueType::kString}) {
      if (type != formats::ValueTypeName(value)) continue;
      field.type = value;
      known = true;
    }
    if (!known) return wrong();
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

absl::Status Put(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return absl::OkStatus();
  return absl::CancelledError("nobody reads standard output");
}

absl::Status PrintBatches(io::FileSystem& files, data::SourceSpec source, const CatFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const formats::Schema schema, ParseColumns(flags.batches));
  source.may_be_empty = true;
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> records,
                          data::OpenSource(files, source));
  MUSTER_ASSIGN_OR_RETURN(const auto reader,
                          data::BatchReader::Create(records, schema, {.batch_size = kBatchRows}));
  const formats::BatchStreamEncoder encoder(schema);
  MUSTER_RETURN_IF_ERROR(Put(encoder.Start()));
  formats::Columns columns(schema);
  std::string frame;
  uint64_t left = flags.limit;
  while (left > 0) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&columns));
    if (!more) break;
    while (static_cast<uint64_t>(columns.rows()) > left) columns.RemoveRow(columns.rows() - 1);
    left -= static_cast<uint64_t>(columns.rows());
    frame.clear();
    MUSTER_RETURN_IF_ERROR(encoder.Encode(columns, &frame));
    MUSTER_RETURN_IF_ERROR(Put(frame));
  }
  MUSTER_RETURN_IF_ERROR(Put(formats::BatchStreamEncoder::End()));
  return std::fflush(stdout) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "standard output");
}

absl::Status RunCat(const CatFlags& flags) {
  const auto files = files::OpenFileSystems();
  const data::SourceSpec spec = {.patterns = flags.patterns,
                                 .format = flags.format,
                                 .note = PrintNotesOnce(),
                                 .schemes = DataSchemes(flags.kafka)};
  if (!flags.batches.empty()) return PrintBatches(*files, spec, flags);
  MUSTER_ASSIGN_OR_RETURN(const auto source, data::OpenSource(*files, spec));
  uint64_t shown = 0;
  for (size_t number = 0; number < source->chunks().size(); ++number) {
    MUSTER_ASSIGN_OR_RETURN(const auto stream, source->Stream(number));
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const auto piece, stream->Next());
      if (piece == nullptr) break;
      if (piece->place == data::RecordPlace::kRow) {
        return absl::InvalidArgumentError(
            StrCat(piece->file,
                   ": rows of Parquet are not printed; `muster records from-parquet` makes "
                   "records of them"));
      }
      MUSTER_RETURN_IF_ERROR(source->CountBad(number, *piece));
      for (size_t record = 0; record < piece->records.size(); ++record) {
        if (shown++ == flags.limit) return absl::OkStatus();
        Print(*piece, record, flags.json);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecordsCat(CLI::App& records) {
  const auto flags = std::make_shared<CatFlags>();
  CLI::App* verb = records.add_subcommand("cat", "Print the records of files or topics");
  verb->footer(
      "A row of CSV or a JSON object is printed as it is, a tf.Example as a JSON object of lists.\n"
      "Example:\n  muster records cat kafka://broker:9092/clicks --limit 3");
  verb->add_option("data", flags->patterns,
                   "TFRecord, CSV or JSON lines: files or globs; or kafka://BROKER,BROKER/TOPIC")
      ->required()
      ->type_name("GLOB");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->add_option("--limit", flags->limit, "Records to print (default: all)");
  verb->add_flag("--json", flags->json,
                 "One JSON object a record: {\"where\": file and byte or line, or partition and "
                 "offset; \"record\": its text}");
  verb->add_option(
          "--batches", flags->batches,
          "As a stream of batches (docs/formats/batch_stream.md) with these columns, which\n"
          "are lists: {\"age\": \"float\", \"job\": \"string\"}")
      ->type_name("COLUMNS");
  verb->callback([flags] { FailUnlessOk(RunCat(*flags)); });
}

}  // namespace muster::cli
