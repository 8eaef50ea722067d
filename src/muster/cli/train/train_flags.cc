#include "muster/cli/train/train_flags.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/base/strings.h"
#include "muster/train/cluster_role.h"
#include "muster/train/loop/evaluations.h"
#include "muster/train/loop/exporters/exporters.h"
#include "muster/train/loop/hooks/early_stopping.h"
#include "muster/train/loop/hooks/profiler.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr double kSecondsBetweenLooks = 1;

// The metric of a stopping rule decides which checkpoint is the best one; else that of the best
// exporter; else the loss.
absl::StatusOr<train::BestBy> GetBestBy(const EvaluationFlags& flags) {
  if (!flags.early_stops.empty()) {
    using Kind = train::EarlyStopping::Kind;
    MUSTER_ASSIGN_OR_RETURN(const train::EarlyStopping rule,
                            train::ParseEarlyStopping(flags.early_stops.front()));
    return train::BestBy{rule.metric, rule.kind == Kind::kNoIncrease || rule.kind == Kind::kHigher};
  }
  for (const std::string& text : flags.exporters) {
    MUSTER_ASSIGN_OR_RETURN(const auto parsed, train::ParseExporter(text, flags.exports_to_keep));
    if (parsed.by) return *parsed.by;
  }
  return train::BestBy();
}

// Returns "auc 0.8912, average_loss 0.3141": as many metrics as a line has room for. For an
// exported model, whose metrics have Keras's names, the first few.
std::string Summary(const std::vector<metrics::NamedValue>& metrics) {
  constexpr int kInALine = 4;
  const bool of_head = std::ranges::any_of(
      metrics, [](const auto& metric) { return metric.first == "average_loss"; });
  std::string text;
  int shown = 0;
  for (const auto& [name, value] : metrics) {
    const bool is_short = name == "auc" || name == "accuracy" || name == "average_loss";
    if (of_head ? !is_short : name == "global_step") continue;
    if (shown++ == kInALine) break;
    text += absl::StrFormat("%s%s %.4f", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

// Returns "Evaluated step 63: auc 0.8912", or "Evaluated epoch 2 (step 126): auc 0.8912 (training:
// loss 0.4012)".
std::string EvaluationLine(const train::EvalResult& result) {
  if (!result.training)
    return StrCat("Evaluated step ", result.step, ": ", Summary(result.metrics));
  const train::EpochValues& training = *result.training;
  return StrCat("Evaluated epoch ", training.epoch, " (step ", result.step,
                "): ", Summary(result.metrics), " (training: ", Summary(training.metrics), ")");
}

nlohmann::ordered_json RecordsJson(const std::optional<train::RecordCounts>& records) {
  if (!records) return nullptr;
  return {{"trained", records->trained},
          {"dropped", records->dropped},
          {"repeated", records->repeated}};
}

double GetRate(const train::TrainResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.examples) / result.seconds : 0;
}

// Prints how far the training is, and what this run did.
void PrintSteps(const train::TrainResult& result) {
  const auto step = static_cast<long long>(result.step);
  if (result.nothing_left && result.step > result.first_step) {
    std::printf("Trained at step %lld: other replicas have made all of its steps\n", step);
    return;
  }
  if (result.nothing_left && !result.stop_reason.empty()) {
    std::printf(
        "Nothing left to do at step %lld: --early-stop ends the training; leave it out or "
        "change it to continue\n",
        step);
    return;
  }
  if (result.nothing_left) {
    std::printf(
        "Nothing left to do: the model is trained at step %lld; give more --epochs or "
        "--max-steps to continue\n",
        step);
    return;
  }
  std::printf("%s at step %lld", result.interrupted ? "Stopped" : "Trained", step);
  if (result.first_step > 0) {
    std::printf(" (resumed at %lld)", static_cast<long long>(result.first_step));
  }
  std::printf(", %s examples in %s, %s examples/s, loss %.4f",
              FormatCount(static_cast<double>(result.examples)).c_str(),
              FormatDuration(result.seconds).c_str(), FormatCount(GetRate(result)).c_str(),
              result.loss);
  for (const auto& [name, value] : result.metrics) std::printf(", %s %.4f", name.c_str(), value);
  std::printf("\n");
}

void PrintRecords(const train::RecordCounts& records) {
  std::printf("  records    %lld trained, %lld dropped, %lld repeated since the first step\n",
              static_cast<long long>(records.trained), static_cast<long long>(records.dropped),
              static_cast<long long>(records.repeated));
}

}  // namespace

void AddLoggingFlags(CLI::App& verb, LoggingFlags* flags, train::RunConfig* run) {
  verb.add_option("--summary-steps", run->save_summary_steps, "TensorBoard events every N steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--histogram-steps", run->histogram_steps,
                  "Histograms of weights and activations among the events, every N steps; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--rate-steps", run->log_step_count_steps,
                  "Steps and examples per second among the events, every N steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--log-steps", flags->lines.steps, "A line with the loss every N steps")
      ->check(CLI::PositiveNumber);
  verb.add_option("--log-secs", flags->lines.secs, "A line with the loss every N seconds")
      ->check(CLI::PositiveNumber);
  verb.add_flag("--log-at-end", flags->lines.at_end, "A line with the loss at the end");
  verb.add_option("--profile-steps", flags->profile_steps,
                  "Write MODEL_DIR/timeline-STEP.json, for chrome://tracing, every N steps")
      ->check(CLI::PositiveNumber);
}

void AddLoggingHooks(const LoggingFlags& flags, std::vector<std::shared_ptr<train::Hook>>* hooks) {
  const train::LoggingTensorOptions& lines = flags.lines;
  if (lines.steps > 0 || lines.secs > 0 || lines.at_end) {
    hooks->push_back(train::NewLoggingTensor(lines));
  }
  if (flags.profile_steps > 0) hooks->push_back(train::NewProfiler(flags.profile_steps));
}

void AddProtectionFlags(CLI::App& verb, ProtectionFlags* flags) {
  verb.add_option("--certs", flags->certificates,
                  "A folder of muster certs: tasks on other machines are reached by TLS (default: "
                  "MUSTER_CERTS); required beyond loopback")
      ->check(CLI::ExistingDirectory);
  verb.add_flag("--plain-text", flags->plain_text,
                "Other machines are reached without encryption, on a network that you trust "
                "(default: MUSTER_PLAIN_TEXT)");
}

void CheckProtected(const ProtectionFlags& flags, const train::RunConfig& run,
                    const EvaluationFlags& eval) {
  train::ClusterRoleOptions role;  // field by field: g++ 12 warns of TaskContext in an initialiser
  role.evaluator = eval.evaluator;
  role.certificates = flags.certificates;
  role.plain_text = flags.plain_text;
  const absl::Status status = train::CheckProtection(run, role);
  if (!status.ok()) throw CLI::ValidationError("--certs", std::string(ToStd(status.message())));
}

void AddEvaluationFlags(CLI::App& verb, EvaluationFlags* flags) {
  auto* eval =
      verb.add_option("--eval", flags->data.patterns,
                      "Evaluate on these data, or on a share of the training data that is held "
                      "back: 10%; new checkpoints at intervals, and the last one")
          ->type_name("GLOB or SHARE");
  verb.add_option("--eval-steps", flags->steps, "Batches of an evaluation at most (default: all)")
      ->check(CLI::PositiveNumber)
      ->needs(eval);
  verb.add_option("--eval-name", flags->name, "Events go to eval_NAME instead of eval")
      ->needs(eval);
  auto* throttle = verb.add_option("--eval-throttle-secs", flags->throttle_secs,
                                   "The least seconds between evaluations");
  throttle->check(CLI::NonNegativeNumber)->capture_default_str()->needs(eval);
  auto* delay = verb.add_option("--eval-start-delay-secs", flags->start_delay_secs,
                                "The least seconds before the first evaluation");
  delay->check(CLI::NonNegativeNumber)->capture_default_str()->needs(eval);
  verb.add_option("--exporter", flags->exporters,
                  StrCat("SavedModels in MODEL_DIR/export: ", train::DescribeExporters(),
                         "; NAME= before it chooses another folder"))
      ->type_name("KIND")
      ->needs(eval);
  verb.add_option("--exports-to-keep", flags->exports_to_keep,
                  "Exports of latest and best to keep; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(eval);
  auto* evaluator =
      verb.add_flag("--evaluator", flags->evaluator,
                    "Evaluate in a separate task, beside the training (docs/distributed.md)");
  evaluator->needs(eval);
  verb.add_flag("--eval-every-epoch", flags->every_epoch,
                "Save a checkpoint and evaluate at the end of each epoch, and at no other "
                "time but the training's end")
      ->needs(eval)
      ->excludes(throttle)
      ->excludes(delay)
      ->excludes(evaluator);
  verb.add_option("--early-stop", flags->early_stops,
                  "End the training by its evaluations: METRIC:no_increase:STEPS, "
                  "METRIC:no_decrease:STEPS, METRIC:higher:VALUE or METRIC:lower:VALUE; with "
                  "appended :min_steps=STEPS not by evaluations before that step")
      ->type_name("RULE");
  verb.add_flag("--eval-elsewhere", flags->elsewhere,
                "--early-stop goes by what another program (muster evaluate) writes into "
                "MODEL_DIR/eval, instead of --eval");
}

absl::Status CheckEvaluation(const EvaluationFlags& flags, const model::ModelSpec& model) {
  if (!flags.early_stops.empty() && flags.data.patterns.empty() && !flags.elsewhere) {
    throw CLI::RequiresError("--early-stop", "--eval (or --eval-elsewhere)");
  }
  MUSTER_RETURN_IF_ERROR(MakeEvalSpec(flags, model.format).status());
  for (const std::string& text : flags.early_stops) {
    MUSTER_ASSIGN_OR_RETURN(const train::EarlyStopping rule, train::ParseEarlyStopping(text));
    MUSTER_RETURN_IF_ERROR(
        train::CheckMetric(model, rule.metric, StrCat("--early-stop '", text, "'")));
  }
  for (const std::string& text : flags.exporters) {
    MUSTER_ASSIGN_OR_RETURN(const auto parsed, train::ParseExporter(text, flags.exports_to_keep));
    if (!parsed.by) continue;
    MUSTER_RETURN_IF_ERROR(
        train::CheckMetric(model, parsed.by->metric, StrCat("--exporter '", text, "'")));
  }
  return absl::OkStatus();
}

absl::StatusOr<train::EvalSpec> MakeEvalSpec(const EvaluationFlags& flags,
                                             const formats::DataFormat& format) {
  train::EvalSpec spec;
  spec.input = SequentialInput(flags.data, format, kInferenceBatchSize);
  spec.steps.reset();
  if (flags.steps > 0) spec.steps = flags.steps;
  spec.name = flags.name;
  spec.throttle_secs = flags.throttle_secs;
  spec.start_delay_secs = flags.start_delay_secs;
  spec.every_epoch = flags.every_epoch;
  for (const std::string& text : flags.exporters) {
    MUSTER_ASSIGN_OR_RETURN(auto parsed, train::ParseExporter(text, flags.exports_to_keep));
    spec.exporters.push_back(std::move(parsed.exporter));
  }
  MUSTER_ASSIGN_OR_RETURN(spec.best_by, GetBestBy(flags));
  return spec;
}

absl::StatusOr<std::vector<std::shared_ptr<train::Hook>>> GetEarlyStops(
    const EvaluationFlags& flags, const std::string& model_dir) {
  std::vector<std::shared_ptr<train::Hook>> hooks;
  for (const std::string& text : flags.early_stops) {
    MUSTER_ASSIGN_OR_RETURN(train::EarlyStopping rule, train::ParseEarlyStopping(text));
    rule.eval_folder = train::EvalFolder(model_dir, flags.name);
    // Evaluations of another process are not announced, so their folder is polled.
    if (flags.evaluator) rule.run_every_secs = kSecondsBetweenLooks;
    hooks.push_back(train::NewEarlyStopping(std::move(rule)));
  }
  return hooks;
}

void PrintTrained(const OutputFlags& output, const train::TrainResult& result) {
  if (output.json) {
    nlohmann::ordered_json object = {{"event", "trained"},
                                     {"first_step", result.first_step},
                                     {"step", result.step},
                                     {"examples", result.examples},
                                     {"seconds", result.seconds},
                                     {"examples_per_second", GetRate(result)},
                                     {"loss", nullptr},
                                     {"bad_records", result.bad_records},
                                     {"records", RecordsJson(result.records)},
                                     {"replica_changes", result.changes},
                                     {"interrupted", result.interrupted},
                                     {"nothing_left", result.nothing_left},
                                     {"stop_reason", result.stop_reason},
                                     {"checkpoint", result.checkpoint}};
    if (!result.nothing_left) object["loss"] = result.loss;
    if (!result.metrics.empty()) object["metrics"] = NumbersJson(result.metrics);
    std::printf("%s\n", object.dump().c_str());
    return;
  }
  PrintSteps(result);
  if (!result.stop_reason.empty()) std::printf("  ended      %s\n", result.stop_reason.c_str());
  if (result.bad_records > 0) {
    std::printf("  left out   %llu bad records\n",
                static_cast<unsigned long long>(result.bad_records));
  }
  if (result.records) PrintRecords(*result.records);
  for (const std::string& change : result.changes) {
    std::printf("  replicas   %s\n", change.c_str());
  }
  std::printf("  checkpoint %s\n", result.checkpoint.c_str());
}
void ReportEvaluation(const OutputFlags& output, train::Progress& progress,
                      const train::EvalResult& result, const std::vector<std::string>& exports,
                      bool again) {
  if (!output.json) {
    if (!again) {
      progress.Note(StrCat(EvaluationLine(result), LeftOut(result.bad_records)));
    }
    for (const std::string& folder : exports) progress.Note(StrCat("Exported ", folder));
    return;
  }
  if (!again) PrintMetrics(output, "evaluated", result);
  for (const std::string& folder : exports) {
    const nlohmann::ordered_json object = {{"event", "exported"},
                                           {"saved_model", folder},
                                           {"step", result.step},
                                           {"checkpoint", result.checkpoint}};
    std::printf("%s\n", object.dump().c_str());
  }
  std::fflush(stdout);
}

void PrintEvaluated(const OutputFlags& output, const train::EvalResult& result,
                    const std::vector<std::string>& exports) {
  if (output.json) return;
  std::printf("Evaluated %llu examples with %s%s\n",
              static_cast<unsigned long long>(result.examples), result.checkpoint.c_str(),
              LeftOut(result.bad_records).c_str());
  PrintMetrics(output, "evaluated", result);
  for (const std::string& folder : exports) std::printf("  exported   %s\n", folder.c_str());
}

}  // namespace muster::cli
