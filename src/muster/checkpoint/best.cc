#include "muster/checkpoint/best.h"

#include <cmath>
#include <limits>

#include "muster/checkpoint/checkpoint_state.h"
#include "muster/formats/json_fields.h"

namespace muster::checkpoint {
namespace {

constexpr char kBestName[] = "best_checkpoint";
constexpr uint64_t kMaxBestBytes = 64 << 10;

std::string BestPath(const std::string& folder) { return io::JoinPath(folder, kBestName); }

absl::StatusOr<Best> ParseBest(const std::string& text, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const formats::Json json, formats::ParseJsonObject(text, path));
  formats::JsonFields fields(json, path);
  Best best = {.name = fields.Text("checkpoint"),
               .step = fields.Int("step", 0, 0, std::numeric_limits<int64_t>::max()),
               .metric = fields.Text("metric"),
               .higher_is_better = fields.Bool("higher_is_better", false),
               .value = fields.Number("value", std::nan(""))};
  // The name must be that of a checkpoint in this folder, not of one elsewhere.
  if (ParseIndexStep(best.name + ".index") != best.step) {
    fields.Fail("\"checkpoint\" must be model.ckpt-STEP of its \"step\"");
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return best;
}

}  // namespace

absl::StatusOr<std::optional<Best>> ReadBest(io::FileSystem& files, const std::string& folder) {
  const auto text = io::ReadFile(files, BestPath(folder), kMaxBestBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(text.status());
  absl::StatusOr<Best> best = ParseBest(*text, BestPath(folder));
  if (!best.ok()) return absl::DataLossError(best.status().message());
  return *std::move(best);
}

void RemoveBestLeftovers(io::FileSystem& files, const std::string& folder) {
  io::RemoveTemporaries(files, BestPath(folder));
}

absl::Status WriteBest(io::FileSystem& files, const std::string& folder, const Best& best) {
  formats::Json json = {{"checkpoint", best.name},
                        {"step", best.step},
                        {"metric", best.metric},
                        {"higher_is_better", best.higher_is_better},
                        {"value", nullptr}};
  if (std::isfinite(best.value)) json["value"] = best.value;
  return io::WriteFileAtomically(files, BestPath(folder), formats::PrintJson(json) + "\n");
}

absl::StatusOr<std::string> FindBest(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Best> best, ReadBest(files, folder));
  if (!best) {
    return absl::NotFoundError(
        StrCat("no evaluation has recorded which checkpoint of ", folder,
               " is the best: run 'muster train' with --eval, or name a checkpoint"));
  }
  std::string prefix = io::JoinPath(folder, best->name);
  if (files.Stat(prefix + ".index").ok()) return prefix;
  return absl::NotFoundError(StrCat("the best checkpoint by ", best->metric, ", ", prefix,
                                    ", does not exist any more: name another one"));
}

}  // namespace muster::checkpoint
