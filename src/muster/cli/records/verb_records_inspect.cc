#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/formats/columns.h"
#include "muster/formats/example.h"
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

// Numbers as numbers, as far as JSON has them.
ordered_json GetValues(const formats::FeatureText& feature) {
  ordered_json values = ordered_json::array();
  for (const std::string& value : feature.values) {
    ordered_json shown = value;
    if (feature.kind != "bytes") {
      ordered_json number = ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
      if (number.is_number()) shown = std::move(number);
    }
    values.push_back(std::move(shown));
  }
  return values;
}

void PrintExample(const std::string& path, uint64_t offset,
                  const std::vector<formats::FeatureText>& features, bool json) {
  if (json) {
    ordered_json object = {
        {"file", path}, {"offset", offset}, {"features", ordered_json::object()}};
    for (const formats::FeatureText& feature : features) {
      object["features"][feature.name] = {{"kind", feature.kind}, {"values", GetValues(feature)}};
    }
    std::printf("%s\n",
                object.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: record at byte %llu\n", path.c_str(), static_cast<unsigned long long>(offset));
  size_t width = 0;
  for (const formats::FeatureText& feature : features) width = std::max(width, feature.name.size());
  for (const formats::FeatureText& feature : features) {
    std::printf("  %-*s  %-5s  %s\n", static_cast<int>(width), feature.name.c_str(),
                feature.kind.c_str(), absl::StrJoin(feature.values, ", ").c_str());
  }
}

struct RecordsInspectFlags {
  std::vector<std::string> patterns;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool json = false;
};

absl::Status RunRecordsInspect(const RecordsInspectFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandFiles(*files, flags.patterns));
  uint64_t shown = 0;
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, OpenRecords(*files, path));
    for (; shown < flags.limit; ++shown) {
      const uint64_t offset = reader->offset();
      std::string_view record;
      MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
      if (!more) break;
      const auto features = formats::DescribeExample(record);
      if (!features.ok()) return AtRecord(features.status(), path, offset);
      PrintExample(path, offset, *features, flags.json);
    }
  }
  return absl::OkStatus();
}

struct VerifyFlags {
  std::vector<std::string> patterns;
  std::string spec;
  bool json = false;
};

// Counts the records of a sound file.
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
  if (!flags.spec.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, flags.spec));
    schema = spec.features.schema;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandFiles(*files, flags.patterns));
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t records, VerifyFile(*files, path, schema, flags.json));
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
  CLI::App* verb = records.add_subcommand("inspect", "Show the features of tf.Example records");
  verb->footer(
      "Example:\n  muster records inspect data/train/part-00000-of-00005.tfrecord --limit 3");
  verb->add_option("files", flags->patterns, "TFRecord files or globs")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--limit", flags->limit, "Records to show (default: all)");
  verb->add_flag("--json", flags->json,
                 "One record per line: {\"file\", \"offset\", \"features\": {name: {\"kind\", "
                 "\"values\"}}}");
  verb->callback([flags] { FailUnlessOk(RunRecordsInspect(*flags)); });
}

void AddRecordsVerify(CLI::App& records) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb = records.add_subcommand(
      "verify", "Check every checksum and that every record is a tf.Example");
  verb->footer(
      "Ends with code 1 and the file and byte of the first bad record.\nExample:\n"
      "  muster records verify 'data/train/part-*' --spec titanic.yaml");
  verb->add_option("files", flags->patterns, "TFRecord files or globs")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--spec", flags->spec, "Model file whose inputs the records must fit")
      ->type_name("SPEC");
  verb->add_flag("--json", flags->json, "One JSON object per file");
  verb->callback([flags] { FailUnlessOk(RunVerify(*flags)); });
}

}  // namespace muster::cli
