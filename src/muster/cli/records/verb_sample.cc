#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/clicks_sample.h"
#include "muster/files/file_systems.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct SampleFlags {
  uint64_t rows = 200'000;
  uint64_t seed = 1;
  std::string out;
  std::string truth;
  bool json = false;
};

constexpr size_t kTextBytes = size_t{256} << 10;

// A text file that has its name only when it is whole.
class TextFile {
 public:
  TextFile(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~TextFile() {
    if (file_ == nullptr) return;
    file_->Close().IgnoreError();
    files_.Remove(io::TemporaryPath(path_)).IgnoreError();
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  absl::Status Open() {
    MUSTER_ASSIGN_OR_RETURN(file_, files_.OpenForWrite(io::TemporaryPath(path_)));
    return absl::OkStatus();
  }
  std::string& text() { return text_; }
  absl::Status FlushWhenLong() { return text_.size() < kTextBytes ? absl::OkStatus() : Flush(); }
  absl::Status Finish() {
    MUSTER_RETURN_IF_ERROR(Flush());
    MUSTER_RETURN_IF_ERROR(file_->Sync());
    MUSTER_RETURN_IF_ERROR(file_->Close());
    MUSTER_RETURN_IF_ERROR(files_.Rename(io::TemporaryPath(path_), path_));
    file_ = nullptr;
    return absl::OkStatus();
  }

 private:
  absl::Status Flush() {
    MUSTER_RETURN_IF_ERROR(file_->Append(text_));
    text_.clear();
    return absl::OkStatus();
  }

  io::FileSystem& files_;
  const std::string path_;
  std::unique_ptr<io::WritableFile> file_;
  std::string text_;
};

struct Truth {
  std::vector<double> probabilities;
  std::vector<uint8_t> labels;
};

absl::StatusOr<Truth> WriteClicks(const SampleFlags& flags) {
  const auto files = files::OpenFileSystems();
  for (const auto& [flag, path] :
       {std::pair("--out", flags.out), std::pair("--truth", flags.truth)}) {
    MUSTER_RETURN_IF_ERROR(
        CheckPlace(*files, {.flag = flag, .path = path, .example = "clicks.csv"}));
  }
  const InterruptScope interrupt;
  const data::ClickSampler sampler(flags.seed);
  TextFile csv(*files, flags.out), truth_csv(*files, flags.truth);
  MUSTER_RETURN_IF_ERROR(csv.Open());
  if (!flags.truth.empty()) MUSTER_RETURN_IF_ERROR(truth_csv.Open());
  csv.text() = data::ClickSampler::Header();
  truth_csv.text() = "probability\n";
  Truth truth;
  RowProgress progress("sample", "rows", flags.json);
  for (uint64_t i = 0; i < flags.rows; ++i) {
    progress.Update(i, flags.rows);
    const data::ClickRow row = sampler.Row(i);
    truth.probabilities.push_back(row.probability);
    truth.labels.push_back(row.label);
    data::ClickSampler::AppendCsv(row, &csv.text());
    MUSTER_RETURN_IF_ERROR(csv.FlushWhenLong());
    if (!flags.truth.empty()) {
      absl::StrAppendFormat(&truth_csv.text(), "%.17g\n", row.probability);
      MUSTER_RETURN_IF_ERROR(truth_csv.FlushWhenLong());
    }
    if (InterruptScope::requested()) return absl::CancelledError("stopped; nothing was written");
  }
  MUSTER_RETURN_IF_ERROR(csv.Finish());
  if (!flags.truth.empty()) MUSTER_RETURN_IF_ERROR(truth_csv.Finish());
  return truth;
}

absl::Status RunSampleClicks(const SampleFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const Truth truth, WriteClicks(flags));
  const data::BestScore best = data::ScoreTruth(truth.probabilities, truth.labels);
  if (flags.json) {
    const nlohmann::ordered_json object = {{"event", "sampled"},
                                           {"rows", flags.rows},
                                           {"seed", flags.seed},
                                           {"positives", best.positives},
                                           {"best_auc", best.auc},
                                           {"best_auc_error", best.auc_error},
                                           {"best_log_loss", best.log_loss},
                                           {"best_log_loss_error", best.log_loss_error},
                                           {"out", flags.out}};
    std::printf("%s\n", object.dump().c_str());
    return absl::OkStatus();
  }
  std::printf("Wrote %s rows to %s, %.2f %% of them clicks\n", GroupDigits(flags.rows).c_str(),
              flags.out.c_str(), 100 * best.positives);
  std::printf("Best reachable on these rows: AUC %.4f +- %.4f, log loss %.4f +- %.4f\n", best.auc,
              best.auc_error, best.log_loss, best.log_loss_error);
  return absl::OkStatus();
}

}  // namespace

void AddSample(CLI::App& app) {
  CLI::App* sample = app.add_subcommand("sample", "Make sample data");
  sample->require_subcommand(1);
  sample->footer("Example:\n  muster sample clicks --rows 200000 --out clicks.csv");
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App* clicks =
      sample->add_subcommand("clicks", "Make a click log: label, 13 numbers, 26 categories");
  clicks->footer(
      "Rows are drawn from a known model, the same for every seed: two seeds give training and "
      "test data.\n"
      "Example:\n"
      "  muster sample clicks --rows 200000 --seed 1 --out clicks.csv --truth truth.csv");
  clicks->add_option("--rows", flags->rows, "Number of rows")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31))
      ->capture_default_str();
  clicks->add_option("--seed", flags->seed, "Seed of the rows")->capture_default_str();
  clicks->add_option("--out", flags->out, "CSV file to write")->required()->type_name("FILE");
  clicks->add_option("--truth", flags->truth, "CSV file for the true probability of each row")
      ->type_name("FILE");
  clicks->add_flag("--json", flags->json, "The result as JSON");
  clicks->callback([flags] { FailUnlessOk(RunSampleClicks(*flags)); });
}

}  // namespace muster::cli
