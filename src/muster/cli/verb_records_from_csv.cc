#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/cli/cli.h"
#include "muster/cli/interrupt.h"
#include "muster/cli/verb_records.h"
#include "muster/data/convert.h"
#include "muster/io/local_file_system.h"
#include "muster/model/model_spec.h"
#include "muster/train/progress.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct FromCsvFlags {
  std::vector<std::string> inputs;
  std::string spec;
  std::string folder;
  int shards = 1;
  std::string compression = "none";
  std::string delimiter = ",";
  uint64_t max_bad_records = 0;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

// Shows rows and rows a second while it runs, on a terminal only.
class RowProgress {
 public:
  explicit RowProgress(bool quiet)
      : shown_(!quiet && isatty(STDERR_FILENO) != 0), start_(clock_.MonotonicNanos()) {}
  ~RowProgress() {
    if (open_) std::fputs("\r\x1b[K", stderr);
  }

  void Update(uint64_t rows) {
    const int64_t now = clock_.MonotonicNanos();
    if (!shown_ || now < next_) return;
    constexpr int64_t kInterval = 100'000'000;
    next_ = now + kInterval;
    open_ = true;
    const double rate = static_cast<double>(rows) / seconds();
    std::fprintf(stderr, "\r%s rows  %s rows/s\x1b[K", GroupDigits(rows).c_str(),
                 train::FormatCount(rate).c_str());
  }
  double seconds() const {
    return static_cast<double>(clock_.MonotonicNanos() - start_ + 1) * 1e-9;
  }

 private:
  const SystemClock clock_;
  const bool shown_;
  const int64_t start_;
  int64_t next_ = 0;
  bool open_ = false;
};

data::ConversionSpec SpecOf(const FromCsvFlags& flags) {
  static const std::map<std::string, formats::Compression> kCompressions = {
      {"none", formats::Compression::kNone},
      {"gzip", formats::Compression::kGzip},
      {"zlib", formats::Compression::kZlib}};
  data::ConversionSpec spec;
  spec.inputs = flags.inputs;
  spec.csv.delimiter = ParseDelimiter(flags.delimiter);
  spec.output = {.folder = flags.folder,
                 .shards = flags.shards,
                 .compression = kCompressions.at(flags.compression),
                 .overwrite = flags.overwrite};
  spec.max_bad_records = flags.max_bad_records;
  return spec;
}

void PrintConversion(const FromCsvFlags& flags, const data::ConversionCounts& counts,
                     double seconds) {
  if (flags.json) {
    const nlohmann::ordered_json object = {
        {"event", "converted"},  {"rows", counts.rows},    {"bad_records", counts.bad_records},
        {"bytes", counts.bytes}, {"shards", flags.shards}, {"seconds", seconds},
        {"out", flags.folder}};
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  std::string bad;
  if (counts.bad_records > 0) {
    bad = StrCat(", left out ", GroupDigits(counts.bad_records), " bad ones");
  }
  std::printf("Converted %s rows (%sB%s) to %d shard%s in %s, %s rows/s\n",
              GroupDigits(counts.rows).c_str(),
              train::FormatCount(static_cast<double>(counts.bytes)).c_str(), bad.c_str(),
              flags.shards, flags.shards == 1 ? "" : "s", flags.folder.c_str(),
              train::FormatCount(static_cast<double>(counts.rows) / seconds).c_str());
}

absl::Status RunFromCsv(const FromCsvFlags& flags) {
  const auto files = io::NewLocalFileSystem();
  data::ConversionSpec spec = SpecOf(flags);
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, model::LoadModelSpec(*files, flags.spec));
  spec.schema = model.features.schema;
  const InterruptScope interrupt;
  double seconds = 0;
  data::ConversionCounts counts;
  {
    RowProgress progress(flags.quiet);
    MUSTER_ASSIGN_OR_RETURN(
        counts, data::ConvertCsv(*files, spec, [&](const data::ConversionCounts& so_far) {
          progress.Update(so_far.rows);
          return InterruptScope::requested() ? absl::CancelledError("stopped; nothing was written")
                                             : absl::OkStatus();
        }));
    seconds = progress.seconds();
  }
  PrintConversion(flags, counts, seconds);
  return absl::OkStatus();
}

}  // namespace

void AddRecordsFromCsv(CLI::App& records) {
  const auto flags = std::make_shared<FromCsvFlags>();
  CLI::App* verb =
      records.add_subcommand("from-csv", "Convert CSV files to TFRecord shards of tf.Example");
  verb->footer(
      "Rows are dealt round robin to part-00000-of-0000N.tfrecord (.gz, .zlib when compressed).\n"
      "The shards appear together at the end, or not at all.\n"
      "Example:\n"
      "  muster records from-csv train.csv --spec titanic.yaml --out data/train --shards 5");
  verb->add_option("inputs", flags->inputs, "CSV files or globs, plain or GZIP")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--spec", flags->spec, "Model file whose inputs say the types of the columns")
      ->required()
      ->type_name("SPEC");
  verb->add_option("--out", flags->folder, "Folder of the shards")->required()->type_name("DIR");
  verb->add_option("--shards", flags->shards, "Number of files")
      ->check(CLI::Range(1, data::kMaxShards))
      ->capture_default_str();
  verb->add_option("--compression", flags->compression, "none, gzip or zlib")
      ->check(CLI::IsMember({"none", "gzip", "zlib"}))
      ->capture_default_str();
  verb->add_option("--delimiter", flags->delimiter, "Between cells: a character, or tab")
      ->capture_default_str();
  verb->add_option("--max-bad-records", flags->max_bad_records,
                   "Leave out and count up to N rows that do not fit the spec")
      ->type_name("N");
  verb->add_flag("--overwrite", flags->overwrite, "Remove shards of another count in the folder");
  verb->add_flag("--json", flags->json, "The result as JSON");
  verb->add_flag("--quiet", flags->quiet, "No progress");
  verb->callback([flags] { FailUnlessOk(RunFromCsv(*flags)); });
}

}  // namespace muster::cli
