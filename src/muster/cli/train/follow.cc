#include "muster/cli/train/follow.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/train/follow_group.h"
#include "muster/data/kafka/kafka_growth.h"

namespace muster::cli {

void AddFollowFlags(CLI::App& verb, TrainFlags* flags) {
  auto* const follow =
      verb.add_flag("--follow", flags->follow,
                    "Train on as records come into the topic of --train, each record once, until "
                    "it is stopped (docs/kafka.md)");
  verb.add_option("--follow-secs", flags->follow_seconds,
                  "Of --follow: the most seconds that records wait for further ones, if they are "
                  "fewer than 64 batches")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(follow)
      ->type_name("SECONDS");
  verb.add_option("--follow-group", flags->follow_group,
                  "Of --follow: commit to this consumer group what checkpoints have trained, for "
                  "tools that show its lag")
      ->needs(follow)
      ->type_name("GROUP");
}

absl::Status CheckFollow(const TrainFlags& flags, bool is_job) {
  if (!flags.follow) return absl::OkStatus();
  for (const std::string& pattern : flags.data.patterns) {
    if (IsTopic(pattern)) continue;
    return absl::InvalidArgumentError(
        StrCat("--follow: '", pattern, "' does not grow: --train must name a topic, such as ",
               "kafka://broker1:9092/clicks; write files to one by muster records to-kafka"));
  }
  if (is_job) {
    return absl::InvalidArgumentError(
        "--follow trains in one process: leave out --workers (or give 1), --ps, --evaluator, "
        "--hosts and --on");
  }
  if (flags.epochs > 0) {
    return absl::InvalidArgumentError(
        "--follow takes each record once: leave out --epochs; --max-steps may end the training");
  }
  if (flags.drop_remainder) {
    return absl::InvalidArgumentError(
        "--follow takes each record once: leave out --drop-remainder, which would drop records");
  }
  return absl::OkStatus();
}

std::string GetSegmentFolder(const TrainFlags& flags) {
  return io::JoinPath(flags.run.model_dir, "stream");
}

absl::StatusOr<std::shared_ptr<data::GrowingData>> OpenFollowed(const TrainFlags& flags,
                                                                int64_t batch_size,
                                                                io::FileSystem& files,
                                                                const Clock& clock,
                                                                const std::atomic<bool>& stop) {
  if (!flags.follow) return nullptr;
  if (flags.run.num_worker_replicas > 1 || flags.run.num_ps_replicas > 0) {
    return absl::InvalidArgumentError(
        "--follow trains in one process, but TF_CONFIG names several: unset it");
  }
  data::KafkaGrowthSpec spec = {.names = flags.data.patterns,
                                .folder = GetSegmentFolder(flags),
                                .batch_size = batch_size,
                                .most_seconds = flags.follow_seconds,
                                .fresh = flags.fresh_data};
  MUSTER_ASSIGN_OR_RETURN(spec.settings, ReadKafkaSettings(flags.data.kafka));
  train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, clock);
  return data::OpenKafkaGrowth(std::move(spec), files, clock, stop,
                               [&](const std::string& text) { progress.Note(text); });
}

absl::Status AddFollowGroup(const TrainFlags& flags,
                            std::vector<std::shared_ptr<train::Hook>>* hooks) {
  if (flags.follow_group.empty()) return absl::OkStatus();
  data::TrainedOffsetsSpec spec = {
      .names = flags.data.patterns, .folder = GetSegmentFolder(flags), .group = flags.follow_group};
  MUSTER_ASSIGN_OR_RETURN(spec.settings, ReadKafkaSettings(flags.data.kafka));
  MUSTER_ASSIGN_OR_RETURN(auto offsets, data::OpenTrainedOffsets(spec));
  hooks->push_back(NewFollowGroupHook(std::move(offsets)));
  return absl::OkStatus();
}

}  // namespace muster::cli
