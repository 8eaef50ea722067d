#include "muster/cli/train/agreement.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/base/agreement.h"
#include "muster/base/crc32c.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_text.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/source_set.h"
#include "muster/train/input/data_files.h"

namespace muster::cli {
namespace {

std::string YesNo(bool yes) { return yes ? "yes" : "no"; }

// Prints a number; if it is the default, prints `otherwise`, which says what the default means.
std::string NumberOr(int64_t number, std::string_view otherwise) {
  return number > 0 ? StrCat(number) : std::string(otherwise);
}

std::string GetStrategy(const TaskFacts& facts) {
  const auto by_default = train::DefaultStrategy(facts.flags.run.num_ps_replicas);
  return std::string(train::StrategyName(facts.flags.strategy.value_or(by_default)));
}

std::string MakeSettings(const TaskFacts& facts) {
  return facts.flags.settings.empty() ? "none" : absl::StrJoin(facts.flags.settings, " ");
}

// The TF_CONFIG of an evaluator need not list the other tasks.
bool KnowsCluster(const TaskFacts& facts) { return facts.flags.run.task_type != "evaluator"; }

constexpr char kChiefs[] = "the chief alone writes checkpoints, events and exports";
constexpr char kTells[] = "what a task reports about itself does not change the training";
constexpr char kFormat[] = "the term of --data-format has it";
constexpr char kReaches[] = "how a task reaches the brokers does not change the records";
constexpr char kStarts[] = "the tasks of the job do not get it";

constexpr FlagUse kFlagUses[] = {
    {.flag = "spec",
     .term = "model file",
     .value = [](const TaskFacts& f) { return f.model_file; }},
    {.flag = "--set",
     .term = "settings",
     .value = [](const TaskFacts& f) { return MakeSettings(f); }},
    {.flag = "--train", .term = "data", .value = [](const TaskFacts& f) { return f.data; }},
    {.flag = "--data-format",
     .term = "format",
     .value =
         [](const TaskFacts& f) {
           const std::string given = formats::Describe(f.flags.data.format);
           return given.empty() ? std::string("of the model file") : given;
         }},
    {.flag = "--delimiter", .why_not = kFormat},
    {.flag = "--header", .why_not = kFormat},
    {.flag = "--columns", .why_not = kFormat},
    {.flag = "--trim", .why_not = kFormat},
    {.flag = "--quote", .why_not = kFormat},
    {.flag = "--missing", .why_not = kFormat},
    {.flag = "--encoding-errors", .why_not = kFormat},
    {.flag = "--kafka", .why_not = kReaches},
    {.flag = "--kafka-config", .why_not = kReaches},
    {.flag = "--batch-size",
     .term = "batch size",
     .value = [](const TaskFacts& f) { return StrCat(f.spec.input.reader.batch_size); }},
    {.flag = "--max-bad-records",
     .term = "max bad records",
     .value = [](const TaskFacts& f) { return StrCat(f.spec.input.reader.max_bad_records); }},
    {.flag = "--epochs",
     .term = "epochs",
     .value = [](const TaskFacts& f) { return NumberOr(f.spec.input.reader.epochs, "unlimited"); }},
    {.flag = "--max-steps",
     .term = "max steps",
     .value = [](const TaskFacts& f) { return NumberOr(f.flags.max_steps, "unlimited"); }},
    {.flag = "--steps",
     .term = "steps",
     .value = [](const TaskFacts& f) { return NumberOr(f.flags.steps, "unlimited"); }},
    {.flag = "--seed",
     .term = "seed",
     .value = [](const TaskFacts& f) { return StrCat(f.spec.input.reader.seed); }},
    {.flag = "--class-weight",
     .term = "class weights",
     .value =
         [](const TaskFacts& f) {
           return f.flags.class_weights.empty() ? std::string("none") : f.flags.class_weights;
         }},
    {.flag = "--replicas-per-task",
     .term = "replicas per task",
     .value = [](const TaskFacts& f) { return StrCat(std::max(f.flags.replicas, 1)); }},
    {.flag = "--precision",
     .term = "precision",
     .value =
         [](const TaskFacts& f) {
           const bool short_floats = f.flags.run.precision == engine::Precision::kBfloat16;
           return std::string(short_floats ? "bf16" : "fp32");
         }},
    {.flag = "--no-shuffle",
     .term = "shuffle",
     .value = [](const TaskFacts& f) { return YesNo(f.spec.input.reader.shuffle); }},
    {.flag = "--drop-remainder",
     .term = "drop remainder",
     .value = [](const TaskFacts& f) { return YesNo(f.spec.input.reader.drop_remainder); }},
    {.flag = "--fresh-data",
     .term = "fresh data",
     .value = [](const TaskFacts& f) { return YesNo(f.spec.fresh_data); }},
    {.flag = "--strategy",
     .term = "strategy",
     .value = [](const TaskFacts& f) { return KnowsCluster(f) ? GetStrategy(f) : kUnknownTerm; }},
    {.flag = "--staleness",
     .term = "staleness",
     .value =
         [](const TaskFacts& f) {
           return f.flags.staleness < 0 ? "unlimited" : StrCat(f.flags.staleness);
         }},
    {.flag = "--replicas-to-aggregate",
     .term = "replicas to aggregate",
     .value = [](const TaskFacts& f) { return NumberOr(f.flags.aggregate, "all"); }},
    {.flag = "--min-workers",
     .term = "min workers",
     .value = [](const TaskFacts& f) { return NumberOr(f.flags.min_workers, "all"); }},
    {.flag = "--stop-on-nan",
     .term = "stop on NaN",
     .value = [](const TaskFacts& f) { return YesNo(!f.flags.run.nan_loss_is_failure); }},

    {.flag = "--help", .why_not = "nothing is trained"},
    {.flag = "--help-all", .why_not = "nothing is trained"},
    {.flag = "--model-dir", .why_not = "machines may see the folder under different paths"},
    {.flag = "--cache", .why_not = "it says where features are kept, not what they are"},
    {.flag = "--cache-limit", .why_not = "it says where features are kept, not what they are"},
    {.flag = "--threads", .why_not = "a task's threads share its batch, however many they are"},
    {.flag = "--tensorflow", .why_not = "machines may have it in different places"},
    {.flag = "--certs", .why_not = "it says how tasks reach each other, not what they train"},
    {.flag = "--stall-timeout",
     .why_not = "it says when a link counts as broken, not what is trained"},
    {.flag = "--plain-text", .why_not = "it says how tasks reach each other, not what they train"},
    {.flag = "--rendezvous-timeout",
     .why_not = "it says how long a task waits, not what it trains"},
    {.flag = "--warm-start", .why_not = "the weights that all begin with are the chief's"},
    {.flag = "--continue-from", .why_not = "the weights that all begin with are the chief's"},
    {.flag = "--save-steps", .why_not = kChiefs},
    {.flag = "--save-secs", .why_not = kChiefs},
    {.flag = "--keep-checkpoints", .why_not = kChiefs},
    {.flag = "--keep-checkpoint-hours", .why_not = kChiefs},
    {.flag = "--summary-steps", .why_not = kChiefs},
    {.flag = "--histogram-steps", .why_not = kChiefs},
    {.flag = "--rate-steps", .why_not = kChiefs},
    {.flag = "--eval-elsewhere", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--eval",
     .term = "share held back for evaluations",
     .value = [](const TaskFacts& f) { return StrCat(f.spec.input.source.held_back.share); }},
    {.flag = "--eval-steps", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--eval-name", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--eval-every-epoch", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--eval-throttle-secs", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--eval-start-delay-secs", .why_not = "the chief or the evaluator alone evaluates"},
    {.flag = "--evaluator", .why_not = "the chief alone waits for it"},
    {.flag = "--exporter", .why_not = kChiefs},
    {.flag = "--exports-to-keep", .why_not = kChiefs},
    {.flag = "--early-stop", .why_not = "the chief alone ends the training by it"},
    {.flag = "--log-steps", .why_not = kTells},
    {.flag = "--log-secs", .why_not = kTells},
    {.flag = "--log-at-end", .why_not = kTells},
    {.flag = "--profile-steps", .why_not = kTells},
    {.flag = "--json", .why_not = kTells},
    {.flag = "--quiet", .why_not = kTells},
    {.flag = "--hook-calls", .why_not = "hooks are their own program's"},
    {.flag = "--hook-answers", .why_not = "hooks are their own program's"},
    {.flag = "--follow",
     .term = "follow",
     .value = [](const TaskFacts& f) { return YesNo(f.flags.follow); }},
    {.flag = "--follow-secs", .why_not = "the chief alone decides when a segment begins"},
    {.flag = "--follow-group", .why_not = "the chief alone commits to it"},
    {.flag = "--workers", .why_not = kStarts},
    {.flag = "--ps", .why_not = kStarts},
    {.flag = "--restarts", .why_not = kStarts},
    {.flag = "--hosts", .why_not = kStarts},
    {.flag = "--ssh", .why_not = kStarts},
    {.flag = "--on", .why_not = kStarts},
    {.flag = "--namespace", .why_not = kStarts},
    {.flag = "--context", .why_not = kStarts},
    {.flag = "--kubeconfig", .why_not = kStarts},
    {.flag = "--image", .why_not = kStarts},
    {.flag = "--volume", .why_not = kStarts},
    {.flag = "--pod-template", .why_not = kStarts},
    {.flag = "--queue", .why_not = kStarts},
    {.flag = "--placement", .why_not = kStarts},
    {.flag = "--keytab", .why_not = kStarts},
    {.flag = "--archive", .why_not = kStarts},
    {.flag = "--node-label", .why_not = kStarts},
    {.flag = "--memory", .why_not = kStarts},
    {.flag = "--cores", .why_not = kStarts},
    {.flag = "--gang-timeout", .why_not = kStarts},
    {.flag = "--detach", .why_not = kStarts},
    {.flag = "--job", .why_not = "tasks compare the job's name before anything else"},
};

// Vocabularies from files belong to the model, but are not in the model file.
uint32_t GetWordsChecksum(const features::FeatureSpec& features) {
  uint32_t checksum = 0;
  for (const features::ColumnSpec& column : features.columns) {
    if (column.words_file.empty()) continue;
    for (const std::string& word : column.words) {
      checksum = ExtendCrc32c(checksum, StrCat(word, "\n"));
    }
  }
  return checksum;
}

absl::StatusOr<std::string> DescribeModelFile(const TrainFlags& flags,
                                              const model::ModelSpec& model,
                                              io::FileSystem& files) {
  if (model.exported) return absl::StrFormat("%08x", model.exported->checksum);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadModelText(files, flags.spec));
  const uint32_t words = GetWordsChecksum(model.features);
  if (words == 0) return absl::StrFormat("%08x", Crc32c(text));
  return absl::StrFormat("%08x with vocabularies %08x", Crc32c(text), words);
}

// Each task has its own stream of batches.
absl::StatusOr<std::string> DescribeData(const TrainFlags& flags, const train::TrainSpec& spec,
                                         io::FileSystem& files) {
  if (flags.run.task_type == "ps" || flags.run.task_type == "evaluator") return kUnknownTerm;
  if (data::IsBatchStream(spec.input.source)) return "a stream";
  if (flags.follow) return absl::StrJoin(flags.data.patterns, " ");
  MUSTER_ASSIGN_OR_RETURN(const auto found, data::ListSources(files, spec.input.source));
  return train::DescribeDataFiles(found);
}

}  // namespace

std::span<const FlagUse> FlagUses() { return kFlagUses; }

absl::StatusOr<std::string> MakeAgreement(const TrainFlags& flags, const model::ModelSpec& model,
                                          const train::TrainSpec& spec, io::FileSystem& files) {
  TaskFacts facts = {.flags = flags, .model = model, .spec = spec};
  MUSTER_ASSIGN_OR_RETURN(facts.model_file, DescribeModelFile(flags, model, files));
  MUSTER_ASSIGN_OR_RETURN(facts.data, DescribeData(flags, spec, files));
  const std::string replicas =
      KnowsCluster(facts) ? StrCat(flags.run.num_worker_replicas) : kUnknownTerm;
  std::vector<Term> terms = {{"version", Version()}, {"replicas", replicas}};
  for (const FlagUse& use : kFlagUses) {
    if (use.value != nullptr) terms.push_back({std::string(use.term), use.value(facts)});
  }
  return PrintAgreement(terms);
}

}  // namespace muster::cli
