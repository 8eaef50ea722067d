#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/base/crc32c.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/train/held_back_flag.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/model_text.h"
#include "muster/cli/train/tune_cluster.h"
#include "muster/cli/train/tune_population.h"
#include "muster/cli/train/tune_report.h"
#include "muster/cli/train/tune_spark.h"
#include "muster/cli/train/tune_training.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"
#include "muster/tune/command_objective.h"
#include "muster/tune/runner.h"
#include "muster/tune/study_events.h"
#include "muster/tune/study_folder.h"
#include "muster/tune/study_server.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMostSearchBytes = uint64_t{1} << 20;
constexpr auto kTick = std::chrono::milliseconds(200);
constexpr int kTicksBetweenEvents = 50;
// A server whose caller was killed ends within moments, and the next one takes over.
constexpr double kServeWaitSeconds = 10;

struct TuneFlags {
  std::string search;
  std::string folder;
  int parallel = 1;
  bool processes = false;
  bool serve = false;
  int64_t trials = 0;
  std::string time;
  OutputFlags output;
  ClusterTrialFlags cluster;
  std::vector<std::string> command;  // "": the search of a model file

  bool runs_jobs() const { return cluster.train.where.is_elsewhere(); }
  bool is_on_cluster() const { return runs_jobs() && !cluster.is_on_spark(); }
};

// "searches/adult.yaml" -> "adult-study".
std::string DefaultFolder(const std::string& search) {
  const std::string name = io::Basename(search);
  return StrCat(name.substr(0, name.rfind('.')), "-study");
}

// Whether the files are there that trials of this machine read.
absl::Status CheckFiles(io::FileSystem& files, const tune::SearchFile& search) {
  const auto check = [&](const char* key, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      if (!io::PathScheme(pattern).empty() || NamesShare(pattern)) continue;
      MUSTER_RETURN_IF_ERROR(Annotate(io::Glob(files, pattern).status(), key));
    }
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(check("train", search.train));
  return check("eval", search.eval);
}

absl::StatusOr<tune::SearchFile> LoadSearch(io::FileSystem& files, const TuneFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          io::ReadFile(files, flags.search, kMostSearchBytes));
  MUSTER_ASSIGN_OR_RETURN(
      tune::SearchFile search,
      tune::ParseSearchFile(text, flags.search, flags.serve || !flags.command.empty()));
  tune::Budget& budget = search.study.budget;
  if (flags.trials > 0) budget.trials = flags.trials;
  if (!flags.time.empty()) {
    auto seconds = tune::ParseSeconds(flags.time);
    if (!seconds.ok()) return Annotate(seconds.status(), "--time");
    budget.seconds = *seconds;
  }
  const bool is_grid = search.study.sampler.kind == tune::SamplerSpec::Kind::kGrid;
  if (flags.serve) return search;
  if (budget.trials == 0 && budget.records == 0 && budget.seconds == 0 && !is_grid) {
    return absl::InvalidArgumentError(StrCat(flags.search,
                                             ": has no budget, so the search would not end; add "
                                             "'budget: {trials: 50}', or give --trials 50"));
  }
  if (flags.command.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckSearch(files, search));
    if (!flags.is_on_cluster()) MUSTER_RETURN_IF_ERROR(CheckFiles(files, search));
    if (flags.runs_jobs()) MUSTER_RETURN_IF_ERROR(CheckClusterTrials(search, flags.cluster));
  } else {
    MUSTER_RETURN_IF_ERROR(tune::CheckPlaceholders(flags.command, search.study.space));
  }
  return search;
}

// What a study may not change, with the contents of its model file.
absl::StatusOr<tune::Json> FixedPart(io::FileSystem& files, const tune::SearchFile& search,
                                     const TuneFlags& flags) {
  tune::Json fixed = tune::SearchJson(search, flags.command);
  if (search.model.empty()) return fixed;
  const auto info = files.Stat(search.model);
  if (info.ok() && info->is_folder) return fixed;  // of an exported model
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadModelText(files, search.model));
  fixed["text of the model file (its checksum)"] = Crc32c(text);
  return fixed;
}

class Tuning {
 public:
  Tuning(const TuneFlags& flags, io::FileSystem& files, tune::SearchFile search)
      : flags_(flags), files_(files), search_(std::move(search)) {}

  absl::Status Run() {
    const double wait = flags_.serve ? kServeWaitSeconds : 0;
    MUSTER_ASSIGN_OR_RETURN(folder_, tune::StudyFolder::Open(flags_.folder, wait));
    MUSTER_ASSIGN_OR_RETURN(const tune::Json fixed, FixedPart(files_, search_, flags_));
    MUSTER_ASSIGN_OR_RETURN(
        const auto journal,
        tune::StudyJournal::Open(files_, clock_, folder_->journal(), fixed, search_.study));
    if (flags_.serve) return Serve(*journal);
    MUSTER_RETURN_IF_ERROR(FixSearchData(files_, flags_.folder, &search_));
    MUSTER_ASSIGN_OR_RETURN(const auto objective, NewObjective());
    TuneReport report(flags_.output, *journal);
    report.SayContinues();
    if (cluster_) RemoveLeftJobs(*cluster_, journal->GetSnapshot().history);
    WriteEvents(*journal);
    absl::Status ran;
    {
      std::jthread ticker([&](const std::stop_token& stop) {
        for (int ticks = 1; !stop.stop_requested(); ++ticks) {
          report.Tick();
          if (ticks % kTicksBetweenEvents == 0) WriteEvents(*journal);
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any().wait_for(lock, stop, kTick, [] { return false; });
        }
      });
      ran = tune::RunTrials(*journal, *objective, flags_.parallel, InterruptScope::requested(),
                            [&](const tune::Trial& trial, const tune::Outcome& outcome) {
                              report.AddTrial(trial, outcome);
                            });
    }
    WriteEvents(*journal);
    report.Close();
    MUSTER_RETURN_IF_ERROR(ran);
    return Conclude(*journal);
  }

 private:
  // Answers the lines of standard input until it ends. Whoever writes them runs the trials.
  absl::Status Serve(tune::StudyJournal& journal) {
    tune::StudyServer server(journal, clock_);
    auto written = std::chrono::steady_clock::now();
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%s\n", formats::PrintJson(server.Answer(line)).c_str());
      if (std::fflush(stdout) != 0) break;  // nobody reads the answers
      if (std::chrono::steady_clock::now() - written < kTick * kTicksBetweenEvents) continue;
      WriteEvents(journal);
      written = std::chrono::steady_clock::now();
    }
    WriteEvents(journal);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<tune::Objective>> NewObjective() {
    if (flags_.is_on_cluster()) {
      MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
      MUSTER_ASSIGN_OR_RETURN(const std::string id, folder_->GetId(files_));
      cluster_.emplace(ClusterTrials{.files = files_,
                                     .search = search_,
                                     .flags = flags_.cluster,
                                     .program = program,
                                     .study_id = id,
                                     .log_folder = folder_->logs(),
                                     .stop = InterruptScope::requested()});
      return NewClusterObjective(*cluster_);
    }
    if (flags_.command.empty() && !flags_.processes && !flags_.runs_jobs()) {
      return NewTrainingObjective(files_, clock_, search_, flags_.parallel,
                                  [this](int64_t trial) { return folder_->trial(trial); });
    }
    MUSTER_ASSIGN_OR_RETURN(program_, OwnProgram());
    return tune::NewCommandObjective(
        {.words = [this](const tune::Trial& trial) { return TrialWords(trial); },
         .metric = search_.study.goal.metric,
         .log_folder = folder_->logs(),
         .stop = &InterruptScope::requested()});
  }

  absl::StatusOr<std::vector<std::string>> TrialWords(const tune::Trial& trial) const {
    if (!flags_.command.empty()) {
      return tune::FillPlaceholders(flags_.command, search_.study.space, trial.point);
    }
    MUSTER_ASSIGN_OR_RETURN(
        const TrainingPart part,
        GetTrainingPart(
            files_, search_, trial, [this](int64_t of) { return folder_->trial(of); },
            flags_.cluster.CountReplicas()));
    const std::string model_dir = folder_->trial(trial.number);
    std::vector<std::string> words = TrainWords(search_, trial.point, model_dir, part);
    words.insert(words.end(), {"--json", "--quiet"});
    if (flags_.cluster.is_on_spark()) {
      return MakeSparkCommand(files_, flags_.cluster, program_,
                              {.words = std::move(words), .model_dir = model_dir},
                              InterruptScope::requested());
    }
    words.insert(words.begin(), {program_, "train"});
    return words;
  }

  // For TensorBoard, whose page is no reason to end a study.
  void WriteEvents(const tune::StudyJournal& journal) {
    absl::Status written = tune::WriteExperiment(files_, clock_, folder_->hparams(), search_.study);
    written.Update(tune::WriteMissingTrialEvents(files_, clock_, folder_->hparams(), search_.study,
                                                 journal.GetSnapshot().history));
    if (written.ok()) return;
    std::fprintf(stderr, "warning: events for TensorBoard are missing: %s\n",
                 std::string(written.message()).c_str());
  }

  // The commands that give the best trial by itself.
  std::vector<std::string> BestCommands(const tune::History& history,
                                        const tune::Trial& best) const {
    std::vector<std::string> commands;
    if (flags_.command.empty()) {
      const std::string name = "best-model";
      const std::string folder = cluster_ ? io::JoinPath(flags_.cluster.model_dir, name) : name;
      for (std::vector<std::string>& words : ReproducingTrainings(search_, history, best, folder)) {
        words.insert(words.begin(), {"muster", "train"});
        if (cluster_) AddClusterWords(flags_.cluster, &words);
        if (flags_.cluster.is_on_spark()) {
          words.insert(words.end(), flags_.cluster.words.begin(), flags_.cluster.words.end());
        }
        commands.push_back(QuoteCommand(words));
      }
      return commands;
    }
    for (const tune::Trial* const trial : tune::FindLineage(history, best)) {
      std::string variables;  // which a program needs to find what its trial continues from
      if (trial->origin.member >= 0) {
        for (const auto& [name, value] : tune::TrialEnvironment(*trial)) {
          variables += StrCat(name, "=", value, " ");
        }
      }
      commands.push_back(StrCat(
          variables,
          QuoteCommand(tune::FillPlaceholders(flags_.command, search_.study.space, trial->point))));
    }
    return commands;
  }

  std::string GetModelFolder(const tune::Trial& trial) const {
    return cluster_ ? GetClusterFolder(*cluster_, trial.number) : folder_->trial(trial.number);
  }

  // Whether this machine reads the model folders of trials. The volumes of pods are elsewhere.
  bool CanExport() const {
    return flags_.command.empty() &&
           (!cluster_ || !io::PathScheme(flags_.cluster.model_dir).empty());
  }

  // Exports the best trial's model, in place of that of an earlier end of the study.
  absl::Status Export(const tune::Trial& best) {
    TrainedModelFlags trained;
    trained.run.model_dir = GetModelFolder(best);
    if (best.step > 0) {
      trained.checkpoint = io::JoinPath(trained.run.model_dir, StrCat("model.ckpt-", best.step));
    }
    MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(trained));
    const std::string made = io::TemporaryPath(folder_->best());
    MUSTER_RETURN_IF_ERROR(model->estimator->Export(made));
    MUSTER_RETURN_IF_ERROR(files_.RemoveAll(folder_->best()));
    return files_.Rename(made, folder_->best());
  }

  absl::Status Conclude(const tune::StudyJournal& journal) {
    const tune::StudyJournal::Snapshot study = journal.GetSnapshot();
    BestTrial best;
    best.trial = tune::FindBest(study.history, search_.study.goal);
    if (InterruptScope::requested()) {
      return absl::CancelledError(
          StrCat("stopped by ", InterruptScope::StoppedBy(), " after ", study.history.size(),
                 " trials; the same command continues",
                 cluster_ ? ", and the jobs of its trials do meanwhile" : ""));
    }
    if (best.trial != nullptr) {
      best.commands = BestCommands(study.history, *best.trial);
      if (flags_.command.empty()) best.model_dir = GetModelFolder(*best.trial);
      if (CanExport()) {
        MUSTER_RETURN_IF_ERROR(Annotate(Export(*best.trial), "exporting the best trial's model"));
        best.saved_model = folder_->best();
      }
    }
    MUSTER_RETURN_IF_ERROR(study.status);
    PrintStudy(flags_.output, search_.study, study, best);
    return absl::OkStatus();
  }

  const TuneFlags& flags_;
  io::FileSystem& files_;
  const SystemClock clock_;
  tune::SearchFile search_;
  std::unique_ptr<tune::StudyFolder> folder_;
  std::string program_;
  std::optional<ClusterTrials> cluster_;
};

absl::Status RunTune(TuneFlags& flags) {
  const auto files = files::OpenFileSystems();
  auto search = LoadSearch(*files, flags);
  RefuseUnlessOk(search.status());
  if (flags.folder.empty()) flags.folder = DefaultFolder(flags.search);
  // A server may be ended at any moment, since what it has answered is durable.
  std::optional<InterruptScope> interrupt;
  if (!flags.serve) interrupt.emplace();
  return Tuning(flags, *files, *std::move(search)).Run();
}

}  // namespace

void AddTune(CLI::App& app, const std::vector<std::string>& command) {
  const auto flags = std::make_shared<TuneFlags>();
  CLI::App* verb =
      app.add_subcommand("tune", "Search for the best values of a model file or of a command");
  verb->footer(
      "The same command continues a study that was interrupted, with the same trials\n"
      "(docs/tune.md).\n"
      "Examples:\n"
      "  muster tune examples/adult/search.yaml --parallel 2\n"
      "  muster tune search.yaml --trials 30 -- python train.py --lr {lr}\n"
      "  muster tune clicks.yaml --parallel 8 --on kubernetes \\\n"
      "      --image example/muster:1 --volume data:/data --model-dir /data/studies");
  verb->add_option("search", flags->search, "Search file (docs/tune.md)")
      ->required()
      ->type_name("FILE");
  verb->add_option("study_dir,--study-dir", flags->folder,
                   "Folder of the study (default: the search file's name with -study)")
      ->type_name("DIR");
  verb->add_option("--parallel", flags->parallel, "Trials at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  verb->add_flag("--processes", flags->processes,
                 "Each trial in a process of its own (default: a thread)");
  verb->add_option("--trials", flags->trials, "Trials of the study (default: the file's budget)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--time", flags->time,
                   "Time of the study, such as 90s, 10m or 1.5h (default: the file's budget)");
  verb->add_flag("--serve", flags->serve,
                 "Run no trials: answer the calls on standard input, of a program that runs them "
                 "(docs/formats/study_calls.md)");
  AddOutputFlags(*verb, &flags->output);
  Group(*verb, kResults, {"--json", "--quiet"});
  AddClusterTrialFlags(*verb, &flags->cluster);
  for (const char* const local : {"--processes", "--serve"}) {
    verb->get_option("--on")->excludes(local);
  }
  verb->callback([verb, flags, command] {
    flags->command = command;
    ReadClusterTrialFlags(*verb, &flags->cluster);
    if (flags->runs_jobs() && !command.empty()) {
      throw CLI::ValidationError("--on",
                                 "a command's trials run here: give --on to what it starts");
    }
    if (flags->serve && !command.empty()) {
      throw CLI::ValidationError("--serve", "runs no command: leave out what follows --");
    }
    FailUnlessOk(RunTune(*flags));
  });
}

}  // namespace muster::cli
