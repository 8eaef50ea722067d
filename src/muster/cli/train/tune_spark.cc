#include "muster/cli/train/tune_spark.h"

#include <chrono>
#include <thread>

#include "CLI/CLI.hpp"
#include "muster/cli/train/kafka_ranges.h"
#include "muster/cli/train/train_run.h"
#include "muster/train/model_lease.h"

namespace muster::cli {
namespace {

constexpr auto kLookAtLease = std::chrono::milliseconds(100);
// A lease of 10 s, and what a task takes to end.
constexpr auto kLastDriver = std::chrono::seconds(60);

// Waits for at most kLastDriver: after that the training itself reports who holds the lease.
void WaitUntilNobodyTrains(io::FileSystem& files, const std::string& folder,
                           const std::atomic<bool>& stop) {
  const auto end = std::chrono::steady_clock::now() + kLastDriver;
  while (!stop && std::chrono::steady_clock::now() < end) {
    if (!absl::IsFailedPrecondition(train::CheckNobodyTrainsHere(files, folder))) return;
    std::this_thread::sleep_for(kLookAtLease);
  }
}

}  // namespace

void AddSparkTrialFlags(CLI::App& verb, ClusterTrialFlags* flags) {
  CLI::Option* const on = verb.get_option("--on");
  on->get_validator()->active(false);
  on->check(CLI::IsMember({kKubernetesKind, kYarnKind, kSparkKind}))
      ->description(
          "Where the trials run as jobs: kubernetes (docs/kubernetes.md) or yarn (docs/yarn.md). "
          "For executors of Spark: muster.spark.tune() (docs/spark.md)");
  verb.add_option("--runner", flags->runner, "A word of the driver's program, once for each")
      ->allow_extra_args(false)
      ->needs(on)
      ->group("");
}

void CheckSparkTrialFlags(const CLI::App& verb, const ClusterTrialFlags& flags) {
  if (flags.runner.empty()) {
    throw CLI::ValidationError(
        "--on spark",
        StrCat("only the driver of a SparkSession has executors: call muster.spark.tune(spark, \"",
               verb.get_option("search")->as<std::string>(),
               "\") in its Python program, which runs this study (docs/spark.md)"));
  }
  std::vector<std::string> names = {"--volume", "--archive", "--pod-template", "--model-dir"};
  for (std::string& name : GetWhereFlagNames()) names.push_back(std::move(name));
  for (std::string& name : GetYarnFlagNames()) names.push_back(std::move(name));
  for (const std::string& name : names) {
    if (name == "--on" || verb.get_option(name)->count() == 0) continue;
    throw CLI::ValidationError(name, "is for --on kubernetes or yarn alone");
  }
}

absl::StatusOr<std::vector<std::string>> MakeSparkCommand(io::FileSystem& files,
                                                          const ClusterTrialFlags& flags,
                                                          const std::string& program,
                                                          SparkTraining training,
                                                          const std::atomic<bool>& stop) {
  if (flags.has_tasks()) {  // which must all read the same records
    TrainFlags train;
    MUSTER_RETURN_IF_ERROR(ParseTrainFlags(training.words, &train));
    MUSTER_RETURN_IF_ERROR(FixTopics(files, &train, &training.words));
  }
  WaitUntilNobodyTrains(files, training.model_dir, stop);
  std::vector<std::string> words = flags.runner;
  words.insert(words.end(), {program, flags.has_tasks() ? "worker" : "train"});
  words.insert(words.end(), training.words.begin(), training.words.end());
  return words;
}

}  // namespace muster::cli
