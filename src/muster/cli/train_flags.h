// What `muster train` does besides the steps: lines and events, evaluations, exports, early
// stopping; and how it tells its results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/cli/model_flags.h"
#include "muster/train/basic_hooks.h"
#include "muster/train/run_config.h"
#include "muster/train/specs.h"

namespace muster::cli {

struct EvaluationFlags {
  DataFlags data;
  int64_t steps = 0;
  std::string name;
  double throttle_secs = 600;
  double start_delay_secs = 120;
  std::vector<std::string> exporters;
  int exports_to_keep = 5;
  std::vector<std::string> early_stops;
  bool evaluator = false;  // a task of its own does all this
};

// What a training tells of itself.
struct LoggingFlags {
  train::LoggingTensorOptions lines;
  int64_t profile_steps = 0;
};
// Also what `run` says of summaries and rates.
void AddLoggingFlags(CLI::App& verb, LoggingFlags* flags, train::RunConfig* run);
void AddLoggingHooks(const LoggingFlags& flags, std::vector<std::shared_ptr<train::Hook>>* hooks);

// How tasks of other machines are reached; "" and false leave it to the environment.
struct ProtectionFlags {
  std::string certificates;
  bool plain_text = false;
};

void AddProtectionFlags(CLI::App& verb, ProtectionFlags* flags);
// As of a coordinator: an address of `run` beyond loopback without certificates is wrong use.
void CheckProtected(const ProtectionFlags& flags, const train::RunConfig& run,
                    const EvaluationFlags& eval);

void AddEvaluationFlags(CLI::App& verb, EvaluationFlags* flags);

// INVALID_ARGUMENT for an exporter or a stopping rule that is none.
absl::StatusOr<train::EvalSpec> EvalSpecOf(const EvaluationFlags& flags);
absl::StatusOr<std::vector<std::shared_ptr<train::Hook>>> EarlyStopsOf(
    const EvaluationFlags& flags, const std::string& model_dir);

void PrintTrained(const OutputFlags& output, const train::TrainResult& result);

// An evaluation while the training goes on: an "evaluated" object, or a line among the progress;
// `again`: it was reported, only its exports are new.
void ReportEvaluation(const OutputFlags& output, train::Progress& progress,
                      const train::EvalResult& result, const std::vector<std::string>& exports,
                      bool again);
// The last evaluation, as a table; nothing with --json, where it was reported.
void PrintEvaluated(const OutputFlags& output, const train::EvalResult& result,
                    const std::vector<std::string>& exports);

}  // namespace muster::cli
