#include "muster/cli/train/tune_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/base/terminal.h"
#include "muster/tune/command_objective.h"
#include "muster/tune/importance.h"

namespace muster::cli {
namespace {

using tune::Json;
using tune::Trial;
using tune::TrialState;

// Rows of the table at the end.
constexpr size_t kMostRows = 10;

std::string FormatValue(std::optional<double> value) {
  return value ? absl::StrFormat("%.6g", *value) : "-";
}

std::string FormatStep(int64_t step) { return step == 0 ? "-" : StrCat(step); }

Json TrialJson(const tune::StudySpec& spec, const Trial& trial) {
  Json json = {{"event", "trial"},
               {"trial", trial.number},
               {"state", tune::StateName(trial.state)},
               {spec.goal.metric, trial.value ? tune::NumberJson(*trial.value) : Json(nullptr)},
               {"step", trial.step == 0 ? Json(nullptr) : Json(trial.step)},
               {"records", trial.records},
               {"seconds", trial.seconds},
               {"parameters", tune::PointJson(spec.space, trial.point)}};
  if (trial.origin.member >= 0) {
    json["member"] = trial.origin.member;
    json["generation"] = trial.origin.generation;
    json["parent"] = trial.origin.parent < 0 ? Json(nullptr) : Json(trial.origin.parent);
  }
  if (!trial.stop.empty() && trial.state == TrialState::kStopped) json["stop"] = trial.stop;
  if (!trial.error.empty()) json["error"] = trial.error;
  if (trial.value && !std::isfinite(*trial.value)) {
    json["why_null"] =
        StrCat(spec.goal.metric, " is ", FormatValue(trial.value), ", which is no number of JSON");
  }
  return json;
}

// The trial as it is after its outcome.
Trial Ended(Trial trial, const tune::Outcome& outcome) {
  trial.state = outcome.state;
  if (outcome.has_value) trial.value = outcome.last.value;
  trial.step = outcome.last.step;
  trial.records = outcome.last.records;
  trial.seconds = outcome.seconds;
  trial.error = outcome.error;
  return trial;
}

// Of a trial of a population: the trial from which it continues.
std::string DescribeOrigin(const Trial& trial) {
  if (trial.origin.member < 0) return "";
  if (trial.origin.parent < 0) return StrCat("member ", trial.origin.member, "  ");
  return StrCat("member ", trial.origin.member, " from trial ", trial.origin.parent, "  ");
}

std::string TrialLine(const tune::StudySpec& spec, const Trial& trial) {
  std::string line = absl::StrFormat("trial %-4d %-8s", trial.number, StateName(trial.state));
  if (trial.state == TrialState::kFailed) return StrCat(line, "  ", trial.error);
  return StrCat(line, "  ", spec.goal.metric, " ", FormatValue(trial.value), "  ",
                FormatDuration(trial.seconds), "  ", DescribeOrigin(trial),
                DescribePoint(spec.space, trial.point));
}

// The trials with values, the best first.
std::vector<const Trial*> RankTrials(const tune::StudySpec& spec, const tune::History& history) {
  std::vector<const Trial*> ranked;
  for (const Trial& trial : history) {
    if (trial.value) ranked.push_back(&trial);
  }
  std::ranges::stable_sort(ranked, {},
                           [&spec](const Trial* trial) { return spec.goal.Cost(*trial->value); });
  return ranked;
}

void PrintRow(const tune::StudySpec& spec, const Trial& trial, std::string_view why) {
  std::printf("%6lld  %12s  %-8s  %8s  %9s  %s%s\n", static_cast<long long>(trial.number),
              FormatValue(trial.value).c_str(), StateName(trial.state),
              FormatStep(trial.step).c_str(), FormatDuration(trial.seconds).c_str(),
              StrCat(DescribeOrigin(trial), DescribePoint(spec.space, trial.point)).c_str(),
              std::string(why).c_str());
}

void PrintOmitted(size_t rows, std::string_view of) {
  if (rows > kMostRows) {
    std::printf("%6s  and %zu more%s\n", "", rows - kMostRows, std::string(of).c_str());
  }
}

// The best trials, then those that failed, with their reasons.
void PrintTable(const tune::StudySpec& spec, const tune::History& history) {
  const std::vector<const Trial*> ranked = RankTrials(spec, history);
  std::printf("%6s  %12s  %-8s  %8s  %9s  %s\n", "trial", spec.goal.metric.c_str(), "state", "step",
              "time", "parameters");
  for (const Trial* const trial : std::span(ranked).first(std::min(ranked.size(), kMostRows))) {
    PrintRow(spec, *trial, "");
  }
  PrintOmitted(ranked.size(), "");
  size_t failed = 0;
  for (const Trial& trial : history) {
    if (trial.state != TrialState::kFailed || ++failed > kMostRows) continue;
    PrintRow(spec, trial, StrCat(": ", trial.error));
  }
  PrintOmitted(failed, " that failed, whose errors are in the study's study.log");
}

// Of a study with trials that ended without a number.
std::string DescribeNoBest(const tune::StudySpec& spec) {
  return StrCat("no trial is the best one: none has ended with a number as its ", spec.goal.metric);
}

void PrintText(const tune::StudySpec& spec, const tune::StudyJournal::Snapshot& study,
               const BestTrial& best) {
  PrintTable(spec, study.history);
  const auto importance = tune::MeasureImportance(spec.space, study.history, spec.goal);
  if (!importance.empty()) {
    std::printf("Importance of the parameters for %s:\n", spec.goal.metric.c_str());
    for (const auto& [name, part] : importance) std::printf("  %.2f  %s\n", part, name.c_str());
  }
  if (best.trial == nullptr) {
    std::printf("Best: %s\n", DescribeNoBest(spec).c_str());
    return;
  }
  std::printf("Best: trial %lld, %s %s\n", static_cast<long long>(best.trial->number),
              spec.goal.metric.c_str(), FormatValue(best.trial->value).c_str());
  if (!best.saved_model.empty()) {
    std::printf("  exported   %s\n", best.saved_model.c_str());
  } else if (!best.model_dir.empty()) {
    std::printf("  its model  %s, on the volume of the jobs\n", best.model_dir.c_str());
  }
  std::printf("The same by itself:\n  %s\n", absl::StrJoin(best.commands, "\n  ").c_str());
}

void PrintJsonLine(const Json& json) {
  std::printf("%s\n", formats::PrintJson(json).c_str());
  std::fflush(stdout);
}

}  // namespace

std::string DescribePoint(const tune::Space& space, const tune::Point& point) {
  std::string text;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    if (tune::IsAbsent(point[i])) continue;
    const tune::Parameter& parameter = space.parameters[i];
    const std::string value = parameter.kind == tune::Parameter::Kind::kNumber
                                  ? absl::StrFormat("%.6g", point[i])
                                  : tune::ValueText(ValueJson(parameter, point[i]));
    text += StrCat(text.empty() ? "" : " ", parameter.name, "=", value);
  }
  return text;
}

TuneReport::TuneReport(const OutputFlags& output, const tune::StudyJournal& journal)
    : output_(output),
      journal_(journal),
      rewrites_(!output.quiet && !output.json && CanRewrite(STDERR_FILENO)) {}

void TuneReport::SayContinues() {
  const int64_t ended = journal_.ended_before();
  if (output_.quiet || ended == 0) return;
  std::fprintf(stderr, "The study continues after %lld trials\n", static_cast<long long>(ended));
}

void TuneReport::AddTrial(const Trial& trial, const tune::Outcome& outcome) {
  const Trial ended = Ended(trial, outcome);
  const MutexLock lock(&mutex_);
  if (output_.json) return PrintJsonLine(TrialJson(journal_.spec(), ended));
  if (output_.quiet) return;
  const std::string line = TrialLine(journal_.spec(), ended);
  if (!rewrites_) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s\n", FitColumns(line, TerminalWidth(STDERR_FILENO)).c_str());
  is_open_ = false;
}

void TuneReport::Tick() {
  if (!rewrites_) return;
  const std::string line = StudyLine();
  const MutexLock lock(&mutex_);
  Draw(line);
}

void TuneReport::Draw(const std::string& line) {
  std::fprintf(stderr, "\r\x1b[K%s", FitColumns(line, TerminalWidth(STDERR_FILENO) - 1).c_str());
  std::fflush(stderr);
  is_open_ = true;
}

void TuneReport::Close() {
  const MutexLock lock(&mutex_);
  if (is_open_) std::fputs("\r\x1b[K", stderr);
  is_open_ = false;
}

std::string TuneReport::StudyLine() const {
  const tune::StudyJournal::Progress progress = journal_.GetProgress();
  const tune::StudySpec& spec = journal_.spec();
  const int64_t ended = progress.complete + progress.stopped + progress.failed;
  std::string line = StrCat("tune: ", ended);
  if (spec.budget.trials > 0) line += StrCat(" of ", spec.budget.trials);
  line += StrCat(" trials, ", progress.running, " running");
  if (progress.stopped > 0) line += StrCat(", ", progress.stopped, " stopped");
  if (progress.failed > 0) line += StrCat(", ", progress.failed, " failed");
  if (progress.best) {
    line += StrCat(", best ", spec.goal.metric, " ", FormatValue(progress.best->value), " (trial ",
                   progress.best->number, ")");
  }
  double left = HUGE_VAL;
  if (spec.budget.trials > 0 && ended > 0) {
    left = progress.elapsed / static_cast<double>(ended) *
           static_cast<double>(spec.budget.trials - ended);
  }
  if (spec.budget.seconds > 0) left = std::min(left, spec.budget.seconds - progress.elapsed);
  if (std::isfinite(left)) line += StrCat(", ", FormatDuration(std::max(left, 0.0)), " left");
  return line;
}

void PrintStudy(const OutputFlags& output, const tune::StudySpec& spec,
                const tune::StudyJournal::Snapshot& study, const BestTrial& best) {
  if (!output.json) return PrintText(spec, study, best);
  Json importance = Json::object();
  for (const auto& [name, part] : tune::MeasureImportance(spec.space, study.history, spec.goal)) {
    importance[name] = part;
  }
  const auto failed = std::ranges::count(study.history, TrialState::kFailed, &Trial::state);
  Json json = {{"event", "study"},         {"metric", spec.goal.metric},
               {"end", study.end},         {"trials", study.history.size()},
               {"failed", failed},         {"seconds", study.elapsed},
               {"importance", importance}, {"best", nullptr}};
  if (best.trial == nullptr) {
    json["why_null"] = DescribeNoBest(spec);
  } else {
    json["best"] = TrialJson(spec, *best.trial);
    json["best"].erase("event");
    json["command"] = absl::StrJoin(best.commands, " && ");
    json["model_dir"] = best.model_dir.empty() ? Json(nullptr) : Json(best.model_dir);
    json["saved_model"] = best.saved_model.empty() ? Json(nullptr) : Json(best.saved_model);
  }
  PrintJsonLine(json);
}

}  // namespace muster::cli
