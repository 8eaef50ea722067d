#include "muster/train/cluster/finished_job.h"

#include <chrono>
#include <utility>

#include "muster/base/agreement.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/formats/json_fields.h"

namespace muster::train {
namespace {

using formats::Json;

constexpr char kFinishedName[] = "muster.finished";
constexpr uint64_t kMaxFinishedBytes = 1 << 16;

std::string FinishedPath(const std::string& model_dir) {
  return io::JoinPath(model_dir, kFinishedName);
}

}  // namespace

absl::Status WriteFinishedJob(io::FileSystem& files, const std::string& model_dir,
                              const FinishedJob& finished) {
  MUSTER_ASSIGN_OR_RETURN(const std::string newest, checkpoint::Latest(files, model_dir));
  const Json json = {{"version", 1},
                     {"job", finished.job},
                     {"agreement", finished.agreement},
                     {"checkpoint", io::Basename(newest)}};
  return io::WriteAsOnlyWriter(files, FinishedPath(model_dir),
                               StrCat(formats::PrintJson(json), "\n"));
}

bool HasFinished(io::FileSystem& files, const std::string& model_dir, const FinishedJob& job) {
  const auto text = io::ReadFile(files, FinishedPath(model_dir), kMaxFinishedBytes);
  const auto newest = checkpoint::Latest(files, model_dir);
  if (!text.ok() || !newest.ok()) return false;
  const auto json = formats::ParseJsonObject(*text, FinishedPath(model_dir));
  if (!json.ok()) return false;
  formats::JsonFields fields(*json, FinishedPath(model_dir));
  const bool is_of_job = fields.Int("version", 0, 1, 1) == 1 && fields.Text("job") == job.job &&
                         fields.Text("checkpoint") == io::Basename(*newest);
  const std::string agreement = fields.Text("agreement");
  return fields.status().ok() && is_of_job &&
         DescribeDifference({"", agreement}, {"", job.agreement}).empty();
}

void RemoveFinishedJob(io::FileSystem& files, const std::string& model_dir) {
  files.Remove(FinishedPath(model_dir)).IgnoreError();
}

FinishedJobWatch::FinishedJobWatch(io::FileSystem& files, std::string model_dir, FinishedJob job,
                                   double seconds_between_looks)
    : files_(files),
      model_dir_(std::move(model_dir)),
      job_(std::move(job)),
      seconds_between_looks_(seconds_between_looks) {}

FinishedJobWatch::~FinishedJobWatch() = default;

bool FinishedJobWatch::Look() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  return has_finished_;
}

bool FinishedJobWatch::has_finished() const {
  const std::lock_guard lock(mutex_);
  return has_finished_;
}

void FinishedJobWatch::Run(const std::stop_token& stop) {
  const std::chrono::duration<double> pause(seconds_between_looks_);
  while (!stop.stop_requested()) {
    const bool found = HasFinished(files_, model_dir_, job_);
    std::unique_lock lock(mutex_);
    has_finished_ = found;
    if (found) return;
    changed_.wait_for(lock, stop, pause, [] { return false; });
  }
}

}  // namespace muster::train
