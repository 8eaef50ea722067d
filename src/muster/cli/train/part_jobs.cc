#include "muster/cli/train/part_jobs.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/cli/common/help.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/job_follow.h"
#include "muster/cli/jobs/job_request.h"
#include "muster/cli/jobs/run_here.h"

namespace muster::cli {

void AddPartFlags(CLI::App& verb, const std::string& workers, PartFlags* flags) {
  auto* option = verb.add_option("--workers", flags->workers, workers)->check(CLI::Range(1, 1000));
  verb.add_option("--task", flags->task,
                  "Run as this one of the workers, 0 to N - 1, for a custom launcher")
      ->check(CLI::NonNegativeNumber)
      ->needs(option);
  verb.add_option("--restarts", flags->restarts, "Most restarts of each worker that dies")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->needs(option);
  verb.add_option("--job", flags->job, "The job's name, for muster status")
      ->check(NewJobNameError)
      ->needs(option);
  auto* const on =
      verb.add_option("--on", flags->on, "Where these processes run instead: yarn (docs/yarn.md)")
          ->check(CLI::IsMember({kYarnKind}))
          ->needs(option);
  on->excludes(verb.get_option("--task"));
  Group(verb, kCluster, {"--on"});
  AddYarnFlags(verb, &flags->yarn);
}

absl::Status CheckPartPath(const PartFlags& flags, const char* name, const std::string& path) {
  return flags.is_elsewhere() ? CheckYarnPath(name, path) : absl::OkStatus();
}

absl::Status CheckParts(io::FileSystem& files, const PartFlags& flags, const DataFlags& data,
                        const HookCallFlags& calls) {
  if (std::find(data.patterns.begin(), data.patterns.end(), "-") != data.patterns.end()) {
    return absl::InvalidArgumentError(
        "--data -: data from one pipe cannot be divided among --workers; give files");
  }
  if (!calls.wanted.empty()) {
    return absl::InvalidArgumentError("--hook-calls: --workers have no hooks");
  }
  if (flags.is_elsewhere()) {
    MUSTER_RETURN_IF_ERROR(CheckYarnData(files, "--data", data.patterns));
  }
  if (flags.task >= flags.workers) {
    return absl::InvalidArgumentError(StrCat("--task ", flags.task, ": the last of ", flags.workers,
                                             " workers is ", flags.workers - 1));
  }
  return absl::OkStatus();
}

std::string DescribeReader(const std::string& verb, const PartFlags& flags) {
  return flags.task < 0 ? "" : StrCat(verb, "-task-", flags.task);
}

absl::StatusOr<std::vector<bool>> PartsDone(io::FileSystem& files, const std::string& folder,
                                            const score::PartPlan& plan) {
  std::vector<bool> all;
  for (int part = 0; part < plan.parts; ++part) {
    MUSTER_ASSIGN_OR_RETURN(const bool done, score::PartIsDone(files, folder, plan, part));
    all.push_back(done);
  }
  return all;
}

absl::StatusOr<std::string> RejectsPath(io::FileSystem& files, const std::string& folder,
                                        const score::PartPlan& plan, int part) {
  if (folder.empty()) return "";
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(folder));
  score::PartPlan rejects = plan;
  rejects.suffix = ".jsonl";
  return score::PartPath(folder, rejects, part);
}

void PrintDoneParts(const std::string& folder, const std::vector<bool>& done) {
  const auto there = std::count(done.begin(), done.end(), true);
  if (there == 0) return;
  SayOfJob(StrCat(folder, " has ", there, " of ", done.size(), " parts; they stay"));
}

absl::Status RunPartJob(const std::string& verb, const PartFlags& flags,
                        const std::vector<std::string>& arguments, const std::string& checkpoint,
                        std::FILE* out, const std::function<void()>& undo) {
  const auto ended = [&undo](absl::Status status) {
    if (!status.ok() && undo) undo();
    return status;
  };
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  JobFlags job;
  job.workers = flags.workers;
  job.name = flags.job;
  job.restarts = flags.restarts;
  job.restart_scope = "task";
  std::vector<std::string> taken = {"--restarts", "--job", "--checkpoint", "--on"};
  for (std::string& name : GetYarnFlagNames()) taken.push_back(std::move(name));
  job.command = {flags.is_elsewhere() ? "muster" : program, verb, "--task", "{index}"};
  const auto own = WithoutFlags(arguments, taken);
  job.command.insert(job.command.end(), own.begin(), own.end());
  // there may be a newer or better checkpoint when they start
  job.command.push_back(StrCat("--checkpoint=", checkpoint));
  if (flags.is_elsewhere()) {
    job.place = kYarnPlace;
    job.typed = {verb};
  }
  MUSTER_ASSIGN_OR_RETURN(const auto local, MakeLocalOptions(job));
  MUSTER_ASSIGN_OR_RETURN(JobRequest request, MakeRequest(job));
  request.spec.all_workers = true;
  // the folder is only read, so changes in it are not their progress
  request.spec.model_dir.clear();
  if (flags.is_elsewhere()) {
    MUSTER_RETURN_IF_ERROR(ended(SubmitToYarn(request, flags.yarn)));
    return FollowByName(request.spec.name, request.spec, out);
  }
  return ended(StartJob(request, local, /*detach=*/false, out));
}

}  // namespace muster::cli
