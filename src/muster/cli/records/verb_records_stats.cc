#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/base/terminal.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/profile_printer.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/column_stats.h"
#include "muster/data/profile/profile.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/features/coverage.h"
#include "muster/files/file_systems.h"
#include "muster/model/draft/draft_column.h"
#include "muster/model/spec/model_spec.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using formats::ValueType;
using nlohmann::ordered_json;

struct StatsFlags {
  std::vector<std::string> patterns;
  std::string spec;
  formats::DataFormat format;
  KafkaFlags kafka;
  size_t top = 5;
  uint64_t max_bad_records = 0;
  bool json = false;
};

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void PrintStatsJson(const data::ColumnStats& stats, const features::IdCoverage& coverage,
                    size_t top) {
  ordered_json object = {{"rows", stats.rows()}, {"columns", ordered_json::object()}};
  for (const data::ColumnStats::Column& column : stats.Summarize(top)) {
    ordered_json entry = {{"type", formats::ValueTypeName(column.type)},
                          {"values", column.values},
                          {"missing", column.missing}};
    if (column.type == ValueType::kString) {
      entry["distinct"] = column.distinct;
      entry["more_distinct"] = column.more_distinct;
      entry["top"] = ordered_json::array();
      for (const auto& [value, count] : column.top) entry["top"].push_back({value, count});
    } else if (column.values > 0) {
      entry["min"] = column.min;
      entry["max"] = column.max;
      entry["mean"] = column.mean;
      entry["stddev"] = column.stddev;
    }
    object["columns"][column.name] = std::move(entry);
  }
  object["ids"] = ordered_json::object();
  for (const features::IdCoverage::Column& column : coverage.columns()) {
    object["ids"][column.name] = {{"without_id", column.without},
                                  {"share_without_id", Share(column.without, coverage.rows())},
                                  {"values_without_id", column.values}};
  }
  std::printf("%s\n", object.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

std::string Detail(const data::ColumnStats::Column& column) {
  if (column.values == 0) return "";
  if (column.type != ValueType::kString) {
    return absl::StrFormat("min %.9g  max %.9g  mean %.9g  stddev %.9g", column.min, column.max,
                           column.mean, column.stddev);
  }
  std::string detail =
      StrCat(GroupDigits(column.distinct), column.more_distinct ? "+" : "", " distinct:");
  for (const auto& [value, count] : column.top) {
    detail +=
        StrCat("  ", value.empty() ? "''" : EscapeControls(value), " (", GroupDigits(count), ")");
  }
  return detail;
}

void PrintStatsTable(const data::ColumnStats& stats, size_t top) {
  const auto columns = stats.Summarize(top);
  size_t width = 6;
  for (const auto& column : columns) width = std::max(width, NameColumns(column.name));
  std::printf("%s rows\n%-*s  %-6s  %12s  %12s\n", GroupDigits(stats.rows()).c_str(),
              static_cast<int>(width), "column", "type", "values", "missing");
  for (const auto& column : columns) {
    std::printf("%s  %-6s  %12s  %12s  %s\n", PadName(column.name, width).c_str(),
                std::string(formats::ValueTypeName(column.type)).c_str(),
                GroupDigits(column.values).c_str(), GroupDigits(column.missing).c_str(),
                Detail(column).c_str());
  }
}

// Prints what the model's columns make of the inputs, which shows a vocabulary that matches
// nothing.
void PrintCoverage(const features::IdCoverage& coverage) {
  if (coverage.columns().empty()) return;
  size_t width = 6;
  for (const auto& column : coverage.columns()) width = std::max(width, NameColumns(column.name));
  std::printf("\n%-*s  %15s\n", static_cast<int>(width), "column", "rows without id");
  for (const auto& column : coverage.columns()) {
    std::string values;
    for (const std::string& value : column.values) values += StrCat("  ", value);
    std::printf("%s  %13.1f %%%s\n", PadName(column.name, width).c_str(),
                100 * Share(column.without, coverage.rows()), values.c_str());
  }
}

// Without a model file: describes all columns by what they hold.
absl::Status RunProfile(const StatsFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const data::Profile profile,
                          data::ProfileData(*files, {.patterns = flags.patterns,
                                                     .format = flags.format,
                                                     .schemes = DataSchemes(flags.kafka),
                                                     .max_bad_records = flags.max_bad_records,
                                                     .note = PrintNotesOnce()}));
  for (const std::string& name : profile.left_out) {
    std::fprintf(stderr, "note: column '%s' is left out: it %s\n", name.c_str(),
                 model::WhyLeftOut(profile).c_str());
  }
  flags.json ? PrintProfileJson(profile, flags.top) : PrintProfileTable(profile, flags.top);
  return absl::OkStatus();
}

absl::Status RunStats(const StatsFlags& flags) {
  if (flags.spec.empty()) return RunProfile(flags);
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, flags.spec));
  data::SourceSpec source_spec;
  source_spec.patterns = flags.patterns;
  source_spec.format =
      formats::NameColumns(formats::Override(spec.format, flags.format), spec.features.schema);
  source_spec.note = PrintNotesOnce();
  source_spec.schemes = DataSchemes(flags.kafka);
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> source,
                          data::OpenSource(*files, source_spec, flags.max_bad_records));
  data::ColumnStats stats(formats::WithMissing(spec.features.schema, source_spec.format));
  features::IdCoverage coverage(spec.features);
  MUSTER_ASSIGN_OR_RETURN(
      const auto reader,
      data::BatchReader::Create(source, stats.schema(),
                                {.batch_size = 512, .max_bad_records = flags.max_bad_records}));
  formats::Columns columns(stats.schema()), scalars(spec.features.schema);
  auto progress = std::make_unique<RowProgress>("stats", "rows", flags.json);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&columns));
    if (!more) break;
    stats.Add(columns);
    scalars.Clear();
    stats.FillScalars(columns, &scalars);
    coverage.Add(scalars);
    progress->Update(stats.rows());
  }
  progress.reset();
  if (flags.json) {
    PrintStatsJson(stats, coverage, flags.top);
  } else {
    PrintStatsTable(stats, flags.top);
    PrintCoverage(coverage);
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecordsStats(CLI::App& records) {
  const auto flags = std::make_shared<StatsFlags>();
  CLI::App* verb = records.add_subcommand(
      "stats", "Show the values of each column: missing, distinct, range, mean");
  verb->footer(
      "Deviations are the population's. A missing value that a conversion replaced by its "
      "default counts as a value.\n"
      "A row has no id in a column when none of its values is a word of the vocabulary, or below "
      "'buckets', or there is none; the first such values are shown.\nExamples:\n"
      "  muster records stats train.csv\n"
      "  muster records stats train.csv --spec titanic.yaml");
  verb->add_option("files", flags->patterns,
                   "CSV, TFRecord, Parquet or JSON lines: files or globs; or kafka://BROKER/TOPIC")
      ->required()
      ->type_name("GLOB");
  verb->add_option(
          "--spec", flags->spec,
          "Model file whose inputs are looked at (default: all columns, by what they hold)")
      ->type_name("SPEC");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->add_option("--top", flags->top, "Frequent values to show")->capture_default_str();
  verb->add_option("--max-bad-records", flags->max_bad_records,
                   "Leave out up to N rows that do not fit the spec")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  verb->add_flag("--json", flags->json, "One JSON object");
  verb->callback([flags] { FailUnlessOk(RunStats(*flags)); });
}

}  // namespace muster::cli
