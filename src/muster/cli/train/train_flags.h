// What `muster train` does besides taking steps: lines and events, evaluations, exports, early
// stopping; and how it reports its results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/cli/train/model_flags.h"
#include "muster/train/loop/hooks/basic_hooks.h"
#include "muster/train/loop/run_config.h"
#include "muster/train/loop/specs.h"

namespace muster::cli {

struct EvaluationFlags {
  DataFlags data;
  int64_t steps = 0;
  std::string name;
  double throttle_secs = 600;
  double start_delay_secs = 120;
  bool every_epoch = false;
  std::vector<std::string> exporters;
  int exports_to_keep = 5;
  std::vector<std::string> early_stops;
  bool elsewhere = false;  // another program evaluates and writes the events
  bool evaluator = false;  // a separate task does all this
};

// What a training reports about itself.
struct LoggingFlags {
  train::LoggingTensorOptions lines;
  int64_t profile_steps = 0;
};
// Also adds the flags for summaries and rates in `run`.
void AddLoggingFlags(CLI::App& verb, LoggingFlags* flags, train::RunConfig* run);
void AddLoggingHooks(const LoggingFlags& flags, std::vector<std::shared_ptr<train::Hook>>* hooks);

// How tasks on other machines are reached; "" and false leave it to the environment.
struct ProtectionFlags {
  std::string certificates;
  bool plain_text = false;
};

void AddProtectionFlags(CLI::App& verb, ProtectionFlags* flags);
// Applies the coordinator's rule: an address in `run` beyond loopback without certificates is wrong
// use.
void CheckProtected(const ProtectionFlags& flags, const train::RunConfig& run,
                    const EvaluationFlags& eval);

void AddEvaluationFlags(CLI::App& verb, EvaluationFlags* flags);

// Checks, before anything starts, that stopping rules have evaluations to use, and that rules and
// exporters name metrics that the model has. Wrong use is thrown as CLI11 does.
absl::Status CheckEvaluation(const EvaluationFlags& flags, const model::ModelSpec& model);

// `format` is the data's. INVALID_ARGUMENT for an invalid exporter or stopping rule.
absl::StatusOr<train::EvalSpec> MakeEvalSpec(const EvaluationFlags& flags,
                                             const formats::DataFormat& format);
absl::StatusOr<std::vector<std::shared_ptr<train::Hook>>> GetEarlyStops(
    const EvaluationFlags& flags, const std::string& model_dir);

void PrintTrained(const OutputFlags& output, const train::TrainResult& result);

// Reports an evaluation while the training continues: an "evaluated" object, or a line among the
// progress. `again`: the evaluation was reported before, and only its exports are new.
void ReportEvaluation(const OutputFlags& output, train::Progress& progress,
                      const train::EvalResult& result, const std::vector<std::string>& exports,
                      bool again);
// Prints the last evaluation as a table; nothing with --json, since it was reported already.
void PrintEvaluated(const OutputFlags& output, const train::EvalResult& result,
                    const std::vector<std::string>& exports);

}  // namespace muster::cli
