#include "muster/cli/train/tune_training.h"

#include <algorithm>
#include <utility>

#include "CLI/Error.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/kafka_ranges.h"
#include "muster/cli/train/model_text.h"
#include "muster/cli/train/train_run.h"
#include "muster/cli/train/tune_population.h"
#include "muster/train/input/shared_feeds.h"
#include "muster/train/loop/evaluations.h"
#include "muster/train/run_training.h"
#include "muster/tune/command_objective.h"

namespace muster::cli {
namespace {

// Points with which the model file is read before the first trial.
constexpr int64_t kCheckedPoints = 32;

// What the hook of a trial needs to know.
struct TrialFacts {
  const tune::Trial& trial;
  std::string metric;
  std::string eval_folder;
  int64_t epochs = 0;  // with --eval-every-epoch; 0: evaluations come at other times
  int64_t max_steps = 0;
};

// Reports evaluations to the study, and ends the training when that says so. The last evaluation,
// after which nothing can be ended, is the trial's result.
class StudyHook : public train::Hook {
 public:
  StudyHook(TrialFacts facts, const tune::AddReport& report)
      : facts_(std::move(facts)), report_(report) {
    if (!facts_.trial.reports.empty()) last_ = facts_.trial.reports.back();
  }

  // A process that was killed may have evaluated this checkpoint without having reported it.
  absl::Status AfterCreateSession(train::Session& session) override {
    CountRecords(session);
    const bool is_last = last_.resource + 1 >= facts_.epochs ||
                         (facts_.max_steps > 0 && session.step >= facts_.max_steps);
    if (session.step == 0 || session.step <= last_.step || is_last) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const auto evaluations,
                            train::ReadEvaluations(session.files, facts_.eval_folder));
    const auto found = evaluations.find(session.step);
    if (found == evaluations.end()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const double value,
                            train::FindMetric(found->second, facts_.metric, "metric"));
    Add({.resource = last_.resource + 1, .value = value, .step = session.step});
    MUSTER_RETURN_IF_ERROR(Look(session));
    // This is no failure: the caller sees that the trial was stopped.
    return stopped_ ? absl::AbortedError("the study has stopped this trial") : absl::OkStatus();
  }

  absl::Status AfterRun(train::Session& session, const train::StepValues&) override {
    CountRecords(session);
    return Look(session);
  }
  absl::Status EndEpoch(train::Session& session) override { return Look(session); }

  // As event files have it, from which it may be read again.
  static double Round(double value) { return static_cast<double>(static_cast<float>(value)); }

  void SetValue(const train::EvalResult& result, double value) {
    const int64_t epoch = result.training ? result.training->epoch : last_.resource + 1;
    Add({.resource = facts_.epochs > 0 ? epoch : result.step, .value = value, .step = result.step});
  }

  // What the trial itself has read, of what its training has.
  uint64_t CountOwn(const train::RecordCounts& records) const {
    const auto all = static_cast<uint64_t>(records.trained);
    return all - std::min(all, facts_.trial.origin.records);
  }

  const tune::Report& last() const { return last_; }
  bool stopped() const { return stopped_; }

 private:
  void CountRecords(const train::Session& session) {
    if (session.data.records) records_ = CountOwn(*session.data.records);
  }

  void Add(tune::Report report) {
    report.value = Round(report.value);
    report.records = records_;
    last_ = report;
    is_new_ = true;
  }

  absl::Status Look(train::Session& session) {
    if (!std::exchange(is_new_, false)) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const std::string why, report_(last_));
    if (why.empty()) return absl::OkStatus();
    stopped_ = true;
    session.RequestStop(why);
    return absl::OkStatus();
  }

  const TrialFacts facts_;
  const tune::AddReport& report_;
  tune::Report last_;
  uint64_t records_ = 0;
  bool is_new_ = false, stopped_ = false;
};

class TrainingObjective : public tune::Objective {
 public:
  TrainingObjective(io::FileSystem& files, const Clock& clock, const tune::SearchFile& search,
                    int parallel, std::function<std::string(int64_t trial)> folder)
      : files_(files), clock_(clock), search_(search), folder_(std::move(folder)) {
    if (parallel < 2) return;
    feeds_ = std::make_shared<train::SharedFeeds>(
        train::SharedFeeds::Options{.readers = static_cast<size_t>(parallel)});
  }

  absl::StatusOr<tune::Outcome> Run(const tune::Trial& trial,
                                    const tune::AddReport& report) override {
    try {
      return Train(trial, report);
    } catch (const VerbFailed& failed) {
      return failed.status;
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(StrCat("muster train: ", error.what()));
    }
  }

 private:
  absl::StatusOr<tune::Outcome> Train(const tune::Trial& trial, const tune::AddReport& report) {
    TrainFlags flags;
    MUSTER_ASSIGN_OR_RETURN(const TrainingPart part,
                            GetTrainingPart(files_, search_, trial, folder_));
    std::vector<std::string> words = TrainWords(search_, trial.point, folder_(trial.number), part);
    MUSTER_RETURN_IF_ERROR(ParseTrainFlags(words, &flags));
    MUSTER_RETURN_IF_ERROR(FixTopics(files_, &flags, &words));
    flags.output.quiet = true;
    flags.data.note = flags.eval.data.note = nullptr;
    MUSTER_ASSIGN_OR_RETURN(train::TrainingRequest request, PrepareTraining(flags, files_, clock_));
    request.warns_if_unlearned = false;  // many points of a space do not learn
    request.train.input.feeds = feeds_;
    const int64_t epochs = flags.eval.every_epoch ? request.train.input.reader.epochs : 0;
    const auto hook = std::make_shared<StudyHook>(
        TrialFacts{.trial = trial,
                   .metric = search_.study.goal.metric,
                   .eval_folder = train::EvalFolder(flags.run.model_dir, flags.eval.name),
                   .epochs = epochs,
                   .max_steps = flags.max_steps},
        report);
    request.chief_hooks.push_back(hook);
    absl::Status missing;
    const auto outcome = train::RunTraining(
        std::move(request), files_, clock_,
        [&](train::Progress&, const train::EvalResult& result, const std::vector<std::string>&) {
          const auto value = Find(result);
          missing.Update(value.status());
          if (value.ok()) hook->SetValue(result, *value);
        });
    if (hook->stopped() && absl::IsAborted(outcome.status())) return Stopped(*hook);
    MUSTER_RETURN_IF_ERROR(outcome.status());
    MUSTER_RETURN_IF_ERROR(missing);
    const train::TrainAndEvaluateResult& result = outcome->result;
    if (result.training.interrupted) return absl::CancelledError("told to end");
    if (hook->stopped()) return Stopped(*hook);
    if (!result.evaluation) return absl::InternalError("the training was not evaluated");
    MUSTER_ASSIGN_OR_RETURN(const double value, Find(*result.evaluation));
    tune::Report last = {.resource = result.evaluation->step,
                         .value = StudyHook::Round(value),
                         .step = result.evaluation->step};
    // A training that had nothing left to do evaluates without an epoch.
    if (epochs > 0) {
      last.resource = result.evaluation->training ? result.evaluation->training->epoch : epochs;
    }
    if (result.training.records) {
      last.records = hook->CountOwn(*result.training.records);
    }
    return tune::Outcome{.has_value = true, .last = last};
  }

  static tune::Outcome Stopped(const StudyHook& hook) {
    return {.state = tune::TrialState::kStopped, .has_value = true, .last = hook.last()};
  }

  absl::StatusOr<double> Find(const train::EvalResult& result) const {
    const train::Metrics metrics(result.metrics.begin(), result.metrics.end());
    return train::FindMetric(metrics, search_.study.goal.metric, "metric");
  }

  io::FileSystem& files_;
  const Clock& clock_;
  const tune::SearchFile& search_;
  const std::function<std::string(int64_t trial)> folder_;
  std::shared_ptr<train::SharedFeeds> feeds_;  // null: one trial at a time
};

// The flags of a trial, as the first point has them.
absl::StatusOr<TrainFlags> ParseFlags(const tune::SearchFile& search) {
  const tune::Point point = tune::DrawPoint(search.study.space, search.study.seed, 0);
  TrainFlags flags;
  MUSTER_RETURN_IF_ERROR(
      Annotate(ParseTrainFlags(TrainWords(search, point, "model"), &flags), search.flags_place));
  return flags;
}

}  // namespace

std::vector<std::string> PointSettings(const tune::Space& space, const tune::Point& point) {
  std::vector<std::string> settings;
  const tune::Json values = tune::PointJson(space, point);
  for (const auto& [name, value] : values.items()) {
    settings.push_back(StrCat(name, "=", formats::PrintJson(value)));
  }
  return settings;
}

bool HasFlag(const std::vector<std::string>& flags, std::string_view name) {
  return std::ranges::any_of(flags, [name](const std::string& flag) {
    return flag == name || flag.starts_with(StrCat(name, "="));
  });
}

std::vector<std::string> TrainWords(const tune::SearchFile& search, const tune::Point& point,
                                    const std::string& model_dir, const TrainingPart& part) {
  std::vector<std::string> words = {search.model, model_dir, "--train"};
  words.insert(words.end(), search.train.begin(), search.train.end());
  words.emplace_back("--eval");
  words.insert(words.end(), search.eval.begin(), search.eval.end());
  const bool says_when = HasFlag(search.flags, "--eval-every-epoch") ||
                         HasFlag(search.flags, "--eval-throttle-secs") ||
                         HasFlag(search.flags, "--eval-start-delay-secs");
  // A scheduler decides at evaluations; for population based training it is that at the end.
  using Kind = tune::SchedulerSpec::Kind;
  const Kind scheduler = search.study.scheduler.kind;
  if (scheduler != Kind::kNone && scheduler != Kind::kPbt && !says_when) {
    words.emplace_back("--eval-every-epoch");
  }
  words.insert(words.end(), search.flags.begin(), search.flags.end());
  for (std::string& setting : PointSettings(search.study.space, point)) {
    words.emplace_back("--set");
    words.push_back(std::move(setting));
  }
  if (part.max_steps > 0) words.push_back(StrCat("--max-steps=", part.max_steps));
  if (!part.continue_from.empty()) {
    words.insert(words.end(), {"--continue-from", part.continue_from});
  }
  return words;
}

std::string QuoteCommand(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "-_./=:,+%@";
  std::string text;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
    });
    if (!text.empty()) text += ' ';
    if (is_plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) {
      if (c == '\'') {
        text += "'\\''";
      } else {
        text += c;
      }
    }
    text += '\'';
  }
  return text;
}

absl::Status FixSearchData(io::FileSystem& files, const std::string& folder,
                           tune::SearchFile* search) {
  std::vector<std::string*> names;
  for (auto* const patterns : {&search->train, &search->eval}) {
    for (std::string& pattern : *patterns) {
      if (IsTopic(pattern)) names.push_back(&pattern);
    }
  }
  if (names.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const TrainFlags flags, ParseFlags(*search));
  return FixTopicNames(files, folder, flags.data.kafka, /*begins=*/false, names);
}

absl::Status CheckSearch(io::FileSystem& files, const tune::SearchFile& search) {
  const tune::StudySpec& study = search.study;
  const std::vector<tune::Parameter>& parameters = study.space.parameters;
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec unchanged, LoadModel(files, search.model));
  MUSTER_RETURN_IF_ERROR(train::CheckMetric(unchanged, study.goal.metric, "metric"));
  MUSTER_RETURN_IF_ERROR(ParseFlags(search).status());
  // A parameter is wrong if no point that has it is a model.
  std::vector<bool> works(parameters.size(), false);
  std::vector<absl::Status> errors(parameters.size());
  for (int64_t i = 0; i < kCheckedPoints; ++i) {
    const tune::Point point = tune::DrawPoint(study.space, study.seed, i);
    const auto model = LoadModel(files, search.model, PointSettings(study.space, point));
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (tune::IsAbsent(point[p])) continue;
      works[p] = works[p] || model.ok();
      errors[p].Update(model.status());
    }
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (!works[p] && !errors[p].ok()) return Annotate(errors[p], "space");
  }
  if (study.scheduler.kind != tune::SchedulerSpec::Kind::kPbt) return absl::OkStatus();
  return CheckPopulation(files, search);
}

std::unique_ptr<tune::Objective> NewTrainingObjective(
    io::FileSystem& files, const Clock& clock, const tune::SearchFile& search, int parallel,
    std::function<std::string(int64_t trial)> folder) {
  return std::make_unique<TrainingObjective>(files, clock, search, parallel, std::move(folder));
}

}  // namespace muster::cli
