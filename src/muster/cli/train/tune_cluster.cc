#include "muster/cli/train/tune_cluster.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_printer.h"
#include "muster/cli/train/tune_population.h"
#include "muster/cli/train/tune_spark.h"
#include "muster/cli/train/tune_training.h"
#include "muster/files/file_systems.h"
#include "muster/process/child.h"
#include "muster/process/deadline.h"
#include "muster/tune/command_objective.h"
#include "muster/tune/trial_output.h"

namespace muster::cli {
namespace {

using formats::Json;
using process::Descriptor;
using std::chrono::steady_clock;

constexpr double kReadSeconds = 1;
constexpr auto kLook = std::chrono::seconds(1);  // between two looks at a job
constexpr double kSubmitSeconds = 300;           // for a staged model to be sent
constexpr double kRemoveSeconds = 60;            // for a busy cluster to remove an ended job
constexpr size_t kPieceBytes = size_t{1} << 16;
// A place that does not answer for so long fails the trial.
constexpr auto kPatience = std::chrono::minutes(5);

std::string GetJobName(const std::string& study_id, int64_t trial) {
  return StrCat(study_id, absl::StrFormat("-%04d", trial));
}

// Follows one trial's job.
class TrialJob {
 public:
  TrialJob(const ClusterTrials& trials, const tune::Trial& trial, const tune::AddReport& report)
      : trials_(trials),
        trial_(trial),
        name_(GetJobName(trials.study_id, trial.number)),
        log_path_(tune::TrialLog(trials.log_folder, trial.number)),
        reader_(trials.search.study.goal.metric, trial, report) {}

  absl::StatusOr<tune::Outcome> Run() {
    MUSTER_RETURN_IF_ERROR(OpenLogFile(O_TRUNC));
    MUSTER_RETURN_IF_ERROR(FindOrSubmit());
    MUSTER_ASSIGN_OR_RETURN(log_, place_->OpenLog({job::TaskType::kChief, 0}));
    answered_ = steady_clock::now();
    while (true) {
      if (trials_.stop && why_.empty()) return absl::CancelledError("told to end");
      MUSTER_ASSIGN_OR_RETURN(const bool is_over, Look());
      if (is_over) break;
      MUSTER_RETURN_IF_ERROR(ReadOutput(kReadSeconds).status());
    }
    // What the chief wrote before its end.
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const bool more, ReadOutput(0));
      if (!more) break;
    }
    MUSTER_RETURN_IF_ERROR(reader_.Finish());
    return Conclude();
  }

  // Stops and removes the job of a trial whose result the study has, if there is one.
  void RemoveLeftOver() {
    const auto is_there = Find();
    if (!is_there.ok() || !*is_there || !OpenLogFile(0).ok()) return;
    const absl::Status told = place_->Stop("stopped by the study: it has the trial's result");
    if (!told.ok()) Note(StrCat("the job ", name_, " was not stopped: ", ToStd(told.message())));
    RemoveJob();
  }

 private:
  absl::Status OpenLogFile(int how) {
    how |= O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    file_ = Descriptor(open(log_path_.c_str(), how, 0644));
    return file_.valid() ? absl::OkStatus() : ErrnoStatus(errno, StrCat("opening ", log_path_));
  }

  // Whether the job is there. A process that was killed may have submitted it.
  absl::StatusOr<bool> Find() {
    if (absl::IsNotFound(FindJob(name_).status())) return false;
    MUSTER_ASSIGN_OR_RETURN(place_, OpenJob(name_));
    const auto job = place_->Describe();
    if (job.ok()) return true;
    if (!absl::IsNotFound(job.status())) return job.status();
    MUSTER_RETURN_IF_ERROR(ForgetIfGone(name_));
    return false;
  }

  absl::Status FindOrSubmit() {
    MUSTER_ASSIGN_OR_RETURN(const bool is_there, Find());
    if (is_there) return absl::OkStatus();
    std::vector<std::string> words = {trials_.program, "train"};
    MUSTER_ASSIGN_OR_RETURN(const TrainingPart part,
                            GetTrainingPart(
                                trials_.files, trials_.search, trial_,
                                [this](int64_t trial) { return GetClusterFolder(trials_, trial); },
                                trials_.flags.CountReplicas()));
    const std::vector<std::string> own =
        TrainWords(trials_.search, trial_.point, GetClusterFolder(trials_, trial_.number), part);
    words.insert(words.end(), own.begin(), own.end());
    AddClusterWords(trials_.flags, &words);
    words.insert(words.end(), {"--job", name_, "--detach"});
    MUSTER_ASSIGN_OR_RETURN(const auto child,
                            process::Child::Start({.argv = std::move(words),
                                                   .environment = process::CurrentEnvironment(),
                                                   .stdout_fd = file_.get(),
                                                   .stderr_fd = file_.get()}));
    MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit, child->Wait(kSubmitSeconds));
    if (exit.ok()) {
      MUSTER_ASSIGN_OR_RETURN(place_, OpenJob(name_));
      return absl::OkStatus();
    }
    if (trials_.stop) return absl::CancelledError("told to end");
    return absl::FailedPreconditionError(
        StrCat("the job ", name_, " was not submitted", tune::ReadLastLine(log_path_)));
  }

  // Errors of a place that may answer again are none, for some time.
  absl::Status Tolerate(const absl::Status& status) {
    if (status.ok()) answered_ = steady_clock::now();
    const bool may_answer = absl::IsUnavailable(status) || absl::IsPermissionDenied(status);
    if (may_answer && steady_clock::now() < answered_ + kPatience) return absl::OkStatus();
    return status;
  }

  // Looks at the job now and then, and has it stopped where the study wants that. True: it has
  // ended.
  absl::StatusOr<bool> Look() {
    if (!why_.empty() && !is_told_) {
      const absl::Status told = place_->Stop(StrCat("stopped by the study: ", why_));
      is_told_ = told.ok();
      MUSTER_RETURN_IF_ERROR(Tolerate(told));
    }
    if (steady_clock::now() < next_look_) return false;
    next_look_ = steady_clock::now() + kLook;
    const auto job = place_->Describe();
    MUSTER_RETURN_IF_ERROR(Tolerate(job.status()));
    if (!job.ok()) return false;
    job_ = *job;
    return HasEnded(job_);
  }

  // False: there is nothing more for now.
  absl::StatusOr<bool> ReadOutput(double wait) {
    const auto piece = log_->Read(offset_, kPieceBytes, wait);
    if (absl::IsNotFound(piece.status())) return false;  // its pod is gone
    MUSTER_RETURN_IF_ERROR(Tolerate(piece.status()));
    if (!piece.ok() || piece->bytes.empty()) return false;
    offset_ = piece->next;
    // What cannot be kept still counts.
    if (write(file_.get(), piece->bytes.data(), piece->bytes.size()) < 0) file_ = Descriptor();
    // What it prints after it was told to stop does not count.
    if (why_.empty()) {
      MUSTER_ASSIGN_OR_RETURN(why_, reader_.Add(piece->bytes));
    }
    return true;
  }

  absl::StatusOr<tune::Outcome> Conclude() {
    tune::Outcome outcome = {.has_value = reader_.has_value(), .last = reader_.last()};
    const bool has_succeeded = formats::JsonFields(job_, "job").Text("phase") == "succeeded";
    if (!has_succeeded && why_.empty()) {
      std::string why = JobLine(job_);
      const std::string last = tune::ReadLastLine(log_path_);  // which the line may have already
      if (last.size() > 2 && why.find(last.substr(2)) == why.npos) why += last;
      return absl::AbortedError(StrCat(why, "; its output is in ", log_path_));
    }
    if (!why_.empty()) outcome.state = tune::TrialState::kStopped;
    if (!reader_.has_value()) return reader_.DescribeNoValue(log_path_);
    RemoveJob();
    return outcome;
  }

  // A job that cannot be removed is no reason to lose its result: the trial's output says so.
  void RemoveJob() {
    const auto deadline = process::Deadline::After(kRemoveSeconds);
    while (true) {
      const absl::Status removed = place_->Remove(/*with_work=*/true).status();
      if (removed.ok()) return ForgetIfGone(name_).IgnoreError();
      if (deadline.expired() || trials_.stop) {
        return Note(StrCat("the job ", name_, " of this trial was not removed (",
                           ToStd(removed.message()), "): muster rm ", name_, " removes it"));
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  void Note(const std::string& message) {
    const std::string line = StrCat("muster: ", message, "\n");
    if (write(file_.get(), line.data(), line.size()) < 0) file_ = Descriptor();
  }

  const ClusterTrials& trials_;
  const tune::Trial& trial_;
  const std::string name_, log_path_;
  tune::OutputReader reader_;
  Descriptor file_;
  std::unique_ptr<control::JobPlace> place_;
  std::unique_ptr<control::LogSource> log_;
  int64_t offset_ = 0;
  std::string why_ = {};  // the study stops the trial
  bool is_told_ = false;
  Json job_ = {};  // as it was described last
  steady_clock::time_point next_look_ = {}, answered_ = {};
};

class ClusterObjective : public tune::Objective {
 public:
  explicit ClusterObjective(ClusterTrials trials) : trials_(std::move(trials)) {}

  absl::StatusOr<tune::Outcome> Run(const tune::Trial& trial,
                                    const tune::AddReport& report) override {
    return TrialJob(trials_, trial, report).Run();
  }

 private:
  const ClusterTrials trials_;
};

}  // namespace

int ClusterTrialFlags::CountReplicas() const {
  TrainFlags parsed;
  if (!workers.empty()) ParseWorkers(workers, &parsed).IgnoreError();
  return std::max(parsed.workers, 1);
}

void AddClusterTrialFlags(CLI::App& verb, ClusterTrialFlags* flags) {
  AddClusterTrainFlags(verb, &flags->train);
  verb.remove_option(verb.get_option("--detach"));
  CLI::Option* const on = verb.get_option("--on");
  verb.add_option("--model-dir", flags->model_dir,
                  "With --on: the folder in which each trial gets its model folder, by a path that "
                  "the tasks have")
      ->needs(on)
      ->type_name("DIR");
  verb.add_option("--workers", flags->workers,
                  "With --on: replicas of each trial (default: one), as for muster train")
      ->needs(on)
      ->type_name("N or MIN:MAX");
  verb.add_option("--ps", flags->ps, "With --on: parameter servers of each trial")
      ->needs("--workers")
      ->check(CLI::Range(1, 1000));
  Group(verb, kCluster, {"--model-dir", "--workers", "--ps"});
  AddSparkTrialFlags(verb, flags);
}

void ReadClusterTrialFlags(const CLI::App& verb, ClusterTrialFlags* flags) {
  if (!flags->train.where.is_elsewhere()) return;
  if (flags->is_on_spark()) {
    CheckSparkTrialFlags(verb, *flags);
  } else if (flags->model_dir.empty()) {
    throw CLI::RequiresError("--on", "--model-dir");
  }
  std::vector<std::string> names = {"--volume", "--archive", "--pod-template", "--workers", "--ps"};
  for (std::string& name : GetWhereFlagNames()) names.push_back(std::move(name));
  for (std::string& name : GetYarnFlagNames()) names.push_back(std::move(name));
  for (const std::string& name : names) {
    if (name == "--on" && flags->is_on_spark()) continue;
    for (const std::string& value : verb.get_option(name)->results()) {
      flags->words.push_back(name);
      flags->words.push_back(value);
    }
  }
}

void AddClusterWords(const ClusterTrialFlags& flags, std::vector<std::string>* words) {
  words->insert(words->end(), {"--json", "--quiet"});
  words->insert(words->end(), flags.words.begin(), flags.words.end());
}

std::string GetClusterFolder(const ClusterTrials& trials, int64_t trial) {
  return io::JoinPath(trials.flags.model_dir, GetJobName(trials.study_id, trial));
}

absl::Status CheckClusterTrials(const tune::SearchFile& search, const ClusterTrialFlags& flags) {
  const tune::Point point = tune::DrawPoint(search.study.space, search.study.seed, 0);
  const std::string folder = io::JoinPath(flags.model_dir, "trial");
  std::vector<std::string> words = TrainWords(search, point, folder);
  words.insert(words.end(), {"--json", "--quiet"});
  TrainFlags train;
  MUSTER_RETURN_IF_ERROR(Annotate(ParseTrainFlags(words, &train), search.flags_place));
  if (!flags.workers.empty()) MUSTER_RETURN_IF_ERROR(ParseWorkers(flags.workers, &train));
  if (train.eval.evaluator) {
    return absl::InvalidArgumentError(
        StrCat(search.flags_place,
               ": --evaluator takes the evaluations from the chief, whose last one is a trial's "
               "result with --on: leave it out"));
  }
  train.ps = flags.ps;
  const bool is_pbt = search.study.scheduler.kind == tune::SchedulerSpec::Kind::kPbt;
  if (is_pbt && (train.ps > 0 || train.min_workers > 0)) {
    return absl::InvalidArgumentError(
        "scheduler: pbt counts the records of an interval in steps, and how many records a step "
        "has is not known with --ps or --workers MIN:MAX: give --workers one number");
  }
  if (flags.is_on_spark()) {
    MUSTER_RETURN_IF_ERROR(CheckTogether(train));
    return LoadCheckedModel(*files::OpenFileSystems(), train).status();
  }
  train.job = "trial";
  return PlanTraining(train, flags.train, words).status();
}

void RemoveLeftJobs(const ClusterTrials& trials, const tune::History& history) {
  for (const tune::Trial& trial : history) {
    const bool has_result = trial.state == tune::TrialState::kComplete ||
                            trial.state == tune::TrialState::kStopped || !trial.stop.empty();
    if (!has_result || trials.stop) continue;
    const auto add_no_report = [](const tune::Report&) { return std::string(); };
    TrialJob(trials, trial, add_no_report).RemoveLeftOver();
  }
}

std::unique_ptr<tune::Objective> NewClusterObjective(ClusterTrials trials) {
  return std::make_unique<ClusterObjective>(std::move(trials));
}

}  // namespace muster::cli
