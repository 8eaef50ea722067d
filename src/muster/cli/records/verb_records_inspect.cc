#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/feature_json.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/profile/find_columns.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/files/file_systems.h"
#include "muster/formats/columns.h"
#include "muster/formats/example.h"
#include "muster/formats/sniff.h"
#include "muster/formats/tfrecord.h"
#include "muster/model/spec/model_spec.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

absl::StatusOr<std::unique_ptr<formats::TfRecordReader>> OpenRecords(io::FileSystem& files,
                                                                     const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const auto compression, formats::DetectCompression(*file));
  return formats::TfRecordReader::Open(std::move(file), compression);
}

absl::Status AtRecord(const absl::Status& status, const std::string& path, uint64_t offset) {
  return Annotate(status, StrCat(path, ": record at byte ", offset));
}

// `place` is {"offset", its byte} or {"line", its line}; `origin` is the same as text.
void PrintExample(const std::string& path, const std::pair<const char*, uint64_t>& place,
                  const std::string& origin, const std::vector<formats::FeatureText>& features,
                  bool json) {
  if (json) {
    ordered_json object = {
        {"file", path}, {place.first, place.second}, {"features", ordered_json::object()}};
    for (const formats::FeatureText& feature : features) {
      object["features"][feature.name] = {{"kind", feature.kind},
                                          {"values", MakeFeatureValues(feature)}};
    }
    std::printf("%s\n",
                object.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s\n", origin.c_str());
  size_t width = 0;
  for (const formats::FeatureText& feature : features) width = std::max(width, feature.name.size());
  for (const formats::FeatureText& feature : features) {
    std::printf("  %-*s  %-5s  %s\n", static_cast<int>(width), feature.name.c_str(),
                feature.kind.c_str(), absl::StrJoin(feature.values, ", ").c_str());
  }
}

// Whether a file holds TFRecords, by the flags or else by its content; true also for a broken one.
// False for a topic, whatever its records are.
absl::StatusOr<bool> HasTfRecords(io::FileSystem& files, const std::string& path,
                                  const formats::DataFormat& format) {
  if (IsTopic(path)) return false;
  if (format.type) return *format.type == formats::FileFormat::kTfRecord;
  using Content = formats::Sniffed::Content;
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  const absl::StatusOr<formats::Sniffed> found = formats::SniffFile(file, format);
  // A file that cannot be decompressed is read as TFRecord, which reports where it is broken.
  if (absl::IsDataLoss(found.status())) return true;
  MUSTER_RETURN_IF_ERROR(found.status());
  return found->content != Content::kText && found->content != Content::kJsonLines;
}

// The rows of a file of CSV or JSON lines, or of a topic: all columns that it has, or those of
// `schema`.
struct TextRows {
  formats::Schema schema;
  std::unique_ptr<data::BatchReader> reader;
};

absl::StatusOr<TextRows> OpenText(io::FileSystem& files, const std::string& path,
                                  formats::DataFormat format, const formats::Schema& schema,
                                  const KafkaFlags& kafka) {
  TextRows rows = {.schema = schema, .reader = nullptr};
  const data::SourceSchemes schemes = DataSchemes(kafka);
  if (schema.fields.empty()) {
    MUSTER_ASSIGN_OR_RETURN(data::FoundColumns found,
                            data::FindColumns(files, {path}, format, schemes, ""));
    rows.schema = std::move(found.schema);
    format = found.format;
  }
  const data::SourceSpec spec = {.patterns = {path}, .format = format, .schemes = schemes};
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> source,
                          data::OpenSource(files, spec, /*max_bad_records=*/0));
  MUSTER_ASSIGN_OR_RETURN(
      rows.reader, data::BatchReader::Create(std::move(source), rows.schema, {.batch_size = 512}));
  return rows;
}

std::vector<formats::FeatureText> DescribeRow(const formats::Schema& schema,
                                              const formats::Columns& columns, int row) {
  std::vector<formats::FeatureText> features;
  for (size_t c = 0; c < schema.fields.size(); ++c) {
    const formats::Column& column = columns.column(static_cast<int>(c));
    const formats::ValueType type = schema.fields[c].type;
    formats::FeatureText& feature = features.emplace_back();
    feature.name = schema.fields[c].name;
    feature.kind = type == formats::ValueType::kString ? "bytes" : formats::ValueTypeName(type);
    for (uint32_t i = column.offsets[row]; i < column.offsets[row + 1]; ++i) {
      feature.values.push_back(type == formats::ValueType::kInt ? StrCat(column.ints[i])
                               : type == formats::ValueType::kFloat
                                   ? StrCat(column.floats[i])
                                   : std::string(column.strings[i]));
    }
  }
  return features;
}

// The files that the patterns name; topics stay as they are.
absl::StatusOr<std::vector<std::string>> ExpandData(io::FileSystem& files,
                                                    const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const std::string& pattern : patterns) {
    if (IsTopic(pattern)) {
      names.push_back(pattern);
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandFiles(files, {pattern}));
    names.insert(names.end(), paths.begin(), paths.end());
  }
  return names;
}

struct RecordsInspectFlags {
  std::vector<std::string> patterns;
  formats::DataFormat format;
  KafkaFlags kafka;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool json = false;
};

absl::Status InspectTfRecords(io::FileSystem& files, const std::string& path,
                              const RecordsInspectFlags& flags, uint64_t* shown) {
  MUSTER_ASSIGN_OR_RETURN(const auto reader, OpenRecords(files, path));
  for (; *shown < flags.limit; ++*shown) {
    const uint64_t offset = reader->offset();
    std::string_view record;
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) break;
    const auto features = formats::DescribeExample(record);
    if (!features.ok()) return AtRecord(features.status(), path, offset);
    PrintExample(path, {"offset", offset}, StrCat(path, ": record at byte ", offset), *features,
                 flags.json);
  }
  return absl::OkStatus();
}

absl::Status InspectText(io::FileSystem& files, const std::string& path,
                         const RecordsInspectFlags& flags, uint64_t* shown) {
  MUSTER_ASSIGN_OR_RETURN(const TextRows rows,
                          OpenText(files, path, flags.format, {}, flags.kafka));
  formats::Columns columns(rows.schema);
  while (*shown < flags.limit) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, rows.reader->Next(&columns));
    if (!more) break;
    for (int row = 0; row < columns.rows() && *shown < flags.limit; ++row, ++*shown) {
      const std::string origin = rows.reader->Origin(row);
      const auto features = DescribeRow(rows.schema, columns, row);
      if (IsTopic(path)) {
        const std::string partition = origin.substr(0, origin.find(':'));
        PrintExample(partition, {"offset", rows.reader->Message(row).offset}, origin, features,
                     flags.json);
        continue;
      }
      uint64_t line = 0;
      (void)absl::SimpleAtoi(origin.substr(origin.rfind(':') + 1), &line);
      PrintExample(path, {"line", line}, origin, features, flags.json);
    }
  }
  return absl::OkStatus();
}

absl::Status RunRecordsInspect(const RecordsInspectFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandData(*files, flags.patterns));
  uint64_t shown = 0;
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const bool records, HasTfRecords(*files, path, flags.format));
    MUSTER_RETURN_IF_ERROR(records ? InspectTfRecords(*files, path, flags, &shown)
                                   : InspectText(*files, path, flags, &shown));
  }
  return absl::OkStatus();
}

struct VerifyFlags {
  std::vector<std::string> patterns;
  std::string spec;
  formats::DataFormat format;
  KafkaFlags kafka;
  bool json = false;
};

absl::StatusOr<uint64_t> VerifyText(io::FileSystem& files, const std::string& path,
                                    const formats::DataFormat& format,
                                    const formats::Schema& schema, const VerifyFlags& flags) {
  RowProgress progress("verify", "rows", flags.json);
  MUSTER_ASSIGN_OR_RETURN(const TextRows rows, OpenText(files, path, format, schema, flags.kafka));
  formats::Columns columns(rows.schema);
  uint64_t count = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, rows.reader->Next(&columns));
    if (!more) return count;
    count += static_cast<uint64_t>(columns.rows());
    progress.Update(count);
  }
}

// Counts the records of a file, all of which must be valid.
absl::StatusOr<uint64_t> VerifyFile(io::FileSystem& files, const std::string& path,
                                    const formats::Schema& schema, bool quiet) {
  RowProgress progress("verify", "records", quiet);
  MUSTER_ASSIGN_OR_RETURN(const auto reader, OpenRecords(files, path));
  const auto decoder = formats::NewExampleDecoder(schema);
  formats::Columns columns(schema);
  for (uint64_t records = 0;; ++records) {
    const uint64_t offset = reader->offset();
    std::string_view record;
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) return records;
    progress.Update(records);
    columns.Clear();
    absl::Status status = decoder->Decode(record, &columns);
    if (status.ok() && schema.fields.empty()) status = formats::DescribeExample(record).status();
    if (!status.ok()) return AtRecord(status, path, offset);
  }
}

absl::Status RunVerify(const VerifyFlags& flags) {
  const auto files = files::OpenFileSystems();
  formats::Schema schema;
  formats::DataFormat format = flags.format;
  if (!flags.spec.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, flags.spec));
    format = formats::NameColumns(formats::Override(spec.format, format), spec.features.schema);
    schema = formats::WithMissing(spec.features.schema, format);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandData(*files, flags.patterns));
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const bool is_records, HasTfRecords(*files, path, format));
    MUSTER_ASSIGN_OR_RETURN(const uint64_t records,
                            is_records ? VerifyFile(*files, path, schema, flags.json)
                                       : VerifyText(*files, path, format, schema, flags));
    if (flags.json) {
      std::printf("%s\n", ordered_json({{"file", path}, {"records", records}}).dump().c_str());
    } else {
      std::printf("%s: %s records, sound\n", path.c_str(), GroupDigits(records).c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecordsInspect(CLI::App& records) {
  const auto flags = std::make_shared<RecordsInspectFlags>();
  CLI::App* verb = records.add_subcommand("inspect", "Show records: features or columns");
  verb->footer(
      "Example:\n  muster records inspect data/train/part-00000-of-00005.tfrecord --limit 3");
  verb->add_option("files", flags->patterns,
                   "TFRecord, CSV or JSON lines: files or globs; or kafka://BROKER/TOPIC")
      ->required()
      ->type_name("GLOB");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->add_option("--limit", flags->limit, "Records to show (default: all)");
  verb->add_flag("--json", flags->json,
                 "One record per line: {\"file\" or partition, \"offset\" (of text: \"line\"), "
                 "\"features\": {name: "
                 "{\"kind\", \"values\"}}}");
  verb->callback([flags] { FailUnlessOk(RunRecordsInspect(*flags)); });
}

void AddRecordsVerify(CLI::App& records) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb =
      records.add_subcommand("verify", "Check every record: checksums, tf.Examples, rows of text");
  verb->footer(
      "Ends with code 1 and the file and byte, or line or offset, of the first bad "
      "record.\nExample:\n"
      "  muster records verify 'data/train/part-*' --spec titanic.yaml");
  verb->add_option("files", flags->patterns,
                   "TFRecord, CSV or JSON lines: files or globs; or kafka://BROKER/TOPIC")
      ->required()
      ->type_name("GLOB");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->add_option("--spec", flags->spec, "Model file whose inputs the records must fit")
      ->type_name("SPEC");
  verb->add_flag("--json", flags->json, "One JSON object per file");
  verb->callback([flags] { FailUnlessOk(RunVerify(*flags)); });
}

}  // namespace muster::cli
