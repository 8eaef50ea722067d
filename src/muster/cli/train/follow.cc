#include "muster/cli/train/follow.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/train/follow_group.h"
#include "muster/data/kafka/kafka_growth.h"
#include "muster/data/kafka/kafka_segments.h"
#include "muster/features/measure.h"
#include "muster/train/input/told_segments.h"

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

absl::Status CheckFollow(const TrainFlags& flags, bool is_elsewhere) {
  if (!flags.follow) return absl::OkStatus();
  for (const std::string& pattern : flags.data.patterns) {
    if (IsTopic(pattern)) continue;
    return absl::InvalidArgumentError(
        StrCat("--follow: '", pattern, "' does not grow: --train must name a topic, such as ",
               "kafka://broker1:9092/clicks; write files to one by muster records to-kafka"));
  }
  if (flags.ps > 0 || flags.min_workers > 0 || flags.eval.evaluator) {
    return absl::InvalidArgumentError(
        "--follow trains in one process, or in a fixed number of --workers: leave out --ps, "
        "--evaluator and --workers MIN:MAX");
  }
  if ((is_elsewhere || !flags.hosts.empty()) && flags.fresh_data) {
    return absl::InvalidArgumentError(
        "--follow on other machines: --fresh-data removes the segments of this machine's folder "
        "only; begin in another --model-dir");
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

absl::Status ForgetSegments(const TrainFlags& flags, io::FileSystem& files) {
  if (!flags.follow || !flags.fresh_data) return absl::OkStatus();
  return data::SegmentRecord(GetSegmentFolder(flags)).Clear(files);
}

absl::Status SetFollowed(const TrainFlags& flags, const model::ModelSpec& model,
                         io::FileSystem& files, const Clock& clock, const std::atomic<bool>& stop,
                         train::TrainSpec* spec) {
  if (!flags.follow) return absl::OkStatus();
  const int replicas = flags.run.num_worker_replicas;
  if (flags.run.num_ps_replicas > 0 || flags.run.task_type == "evaluator" ||
      flags.min_workers > 0) {
    return absl::InvalidArgumentError(
        "--follow trains in a fixed number of replicas: leave out --min-workers, and name neither "
        "ps nor evaluator in TF_CONFIG");
  }
  if (replicas > 1 && features::DependsOnData(model.features)) {
    return absl::InvalidArgumentError(
        "--follow with several replicas: columns cannot take numbers from data that each replica "
        "would find at another time; write the numbers of normalize: auto into the model file "
        "(muster init does), or train in one process");
  }
  std::shared_ptr<data::GrowingData> growth;
  if (flags.run.is_chief) {
    data::KafkaGrowthSpec topics = {.names = flags.data.patterns,
                                    .folder = GetSegmentFolder(flags),
                                    .batch_size = int64_t{spec->input.reader.batch_size} * replicas,
                                    .most_seconds = flags.follow_seconds,
                                    .fresh = flags.fresh_data && replicas == 1,
                                    .waits_for_first = replicas == 1};
    MUSTER_ASSIGN_OR_RETURN(topics.settings, ReadKafkaSettings(flags.data.kafka));
    train::Progress progress(MakeStyle(flags.output), STDERR_FILENO, clock);
    MUSTER_ASSIGN_OR_RETURN(
        growth, data::OpenKafkaGrowth(std::move(topics), files, clock, stop,
                                      [&](const std::string& text) { progress.Note(text); }));
  }
  if (replicas > 1) {
    spec->segments = std::make_shared<train::ToldSegments>(std::move(growth));
    growth = spec->segments;
  }
  spec->input.growth = std::move(growth);
  return absl::OkStatus();
}

absl::Status AddFollowGroup(const TrainFlags& flags,
                            std::vector<std::shared_ptr<train::Hook>>* hooks) {
  if (flags.follow_group.empty() || !flags.run.is_chief) return absl::OkStatus();
  data::TrainedOffsetsSpec spec = {
      .names = flags.data.patterns, .folder = GetSegmentFolder(flags), .group = flags.follow_group};
  MUSTER_ASSIGN_OR_RETURN(spec.settings, ReadKafkaSettings(flags.data.kafka));
  MUSTER_ASSIGN_OR_RETURN(auto offsets, data::OpenTrainedOffsets(spec));
  hooks->push_back(NewFollowGroupHook(std::move(offsets)));
  return absl::OkStatus();
}

}  // namespace muster::cli
