#include "muster/cli/records/conversion.h"

#include <unistd.h>

#include <cstdio>
#include <map>

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/base/number_text.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/records/verbs.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

// Shows rows and rows a second while it runs, on a terminal only.
class RowProgress {
 public:
  RowProgress(bool quiet, const std::string& rows)
      : shown_(!quiet && isatty(STDERR_FILENO) != 0),
        rows_(rows),
        start_(clock_.MonotonicNanos()) {}
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
    std::fprintf(stderr, "\r%s %s  %s %s/s\x1b[K", GroupDigits(rows).c_str(), rows_.c_str(),
                 FormatCount(rate).c_str(), rows_.c_str());
  }
  double seconds() const {
    return static_cast<double>(clock_.MonotonicNanos() - start_ + 1) * 1e-9;
  }

 private:
  const SystemClock clock_;
  const bool shown_;
  const std::string rows_;
  const int64_t start_;
  int64_t next_ = 0;
  bool open_ = false;
};

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
  std::printf("Converted %s %s (%sB%s) to %d shard%s in %s, %s %s/s\n",
              GroupDigits(counts.rows).c_str(), rows.c_str(),
              FormatCount(static_cast<double>(counts.bytes)).c_str(), bad.c_str(), flags.shards,
              flags.shards == 1 ? "" : "s", flags.folder.c_str(),
              FormatCount(static_cast<double>(counts.rows) / seconds).c_str(), rows.c_str());
}

}  // namespace

data::ShardSetSpec ConversionFlags::output() const {
  static const std::map<std::string, formats::Compression> kCompressions = {
      {"none", formats::Compression::kNone},
      {"gzip", formats::Compression::kGzip},
      {"zlib", formats::Compression::kZlib}};
  return {.folder = folder,
          .shards = shards,
          .compression = kCompressions.at(compression),
          .overwrite = overwrite};
}

void AddConversionFlags(CLI::App* verb, ConversionFlags* flags) {
  verb->add_option("--out", flags->folder, "Folder of the shards")->required()->type_name("DIR");
  verb->add_option("--shards", flags->shards, "Number of files")
      ->check(CLI::Range(1, data::kMaxShards))
      ->capture_default_str();
  verb->add_option("--compression", flags->compression, "none, gzip or zlib")
      ->check(CLI::IsMember({"none", "gzip", "zlib"}))
      ->capture_default_str();
  verb->add_flag("--overwrite", flags->overwrite, "Remove shards of another count in the folder");
  verb->add_flag("--json", flags->json, "The result as JSON");
  verb->add_flag("--quiet", flags->quiet, "No progress");
}

absl::Status RunConversion(
    const ConversionFlags& flags, const std::string& rows,
    const std::function<absl::StatusOr<data::ConversionCounts>(const data::ConversionProgress&)>&
        convert) {
  const InterruptScope interrupt;
  double seconds = 0;
  data::ConversionCounts counts;
  {
    RowProgress progress(flags.quiet, rows);
    MUSTER_ASSIGN_OR_RETURN(counts, convert([&](const data::ConversionCounts& so_far) {
                              progress.Update(so_far.rows);
                              return InterruptScope::requested()
                                         ? absl::CancelledError("stopped; nothing was written")
                                         : absl::OkStatus();
                            }));
    seconds = progress.seconds();
  }
  PrintConversion(flags, rows, counts, seconds);
  return absl::OkStatus();
}

}  // namespace muster::cli
