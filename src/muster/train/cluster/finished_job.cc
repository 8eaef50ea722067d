#include "muster/train/cluster/finished_job.h"

#include <utility>

#include "muster/base/agreement.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/formats/json_fields.h"

namespace muster::train {
namespace {

using formats::Json;

constexpr char kFinishedName[] = "muster.finished";
constexpr uint64_t kMaxFinishedBytes = 1 << 16;
constexpr int64_t kNanosBetweenLooks = 2'000'000'000;

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

FinishedJobWatch::FinishedJobWatch(io::FileSystem& files, const Clock& clock, std::string model_dir,
                                   FinishedJob job)
    : files_(files), clock_(clock), model_dir_(std::move(model_dir)), job_(std::move(job)) {}

bool FinishedJobWatch::HasFinished() {
  const int64_t now = clock_.MonotonicNanos();
  int64_t next = next_look_nanos_;
  const bool is_time =
      now >= next && next_look_nanos_.compare_exchange_strong(next, now + kNanosBetweenLooks);
  if (is_time && train::HasFinished(files_, model_dir_, job_)) has_seen_end_ = true;
  return has_seen_end_;
}

}  // namespace muster::train
