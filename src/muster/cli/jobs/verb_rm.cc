#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/job_client.h"
#include "muster/cli/jobs/run_here.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr double kDaySeconds = 86400;
constexpr char kPrevious[] = ".previous";

struct RmFlags {
  std::vector<std::string> jobs;
  std::string older_than;
  bool with_work = false;
  bool forget = false;
  WhereFlags where;
};

// Reads ages as in manifests, and days: "7d".
absl::StatusOr<double> ParseAge(const std::string& text) {
  if (!text.ends_with('d')) return job::ParseDuration(text);
  const auto days = job::ParseDuration(text.substr(0, text.size() - 1));
  if (!days.ok() || text.find_first_not_of("0123456789.d") != std::string::npos) {
    return absl::InvalidArgumentError(StrCat("'", text, "' is not an age such as 7d or 12h"));
  }
  return *days * kDaySeconds;
}

// Removes the job at its place, which knows whether it runs, and its record on this machine.
absl::Status Remove(const control::JobFolder& folder, bool with_work) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_local, IsLocal(folder));
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJobIn(folder));
  MUSTER_ASSIGN_OR_RETURN(const std::string kept, place->Remove(with_work));
  if (!is_local) MUSTER_RETURN_IF_ERROR(files::OpenFileSystems()->RemoveAll(folder.path));
  std::printf("%s\n", io::Basename(folder.path).c_str());
  if (!kept.empty()) {
    SayOfJob(StrCat(kept, " holds files that were not staged and stays; --with-work removes it"));
  }
  return absl::OkStatus();
}

// Removes the job of that name, if there is one, and its work folder: if only a work folder is
// left, there is no journal.
absl::Status RemoveByName(const std::string& jobs, const std::string& name, bool with_work) {
  const auto files = files::OpenFileSystems();
  const control::JobFolder folder{io::JoinPath(jobs, name)};
  const control::JobFolder before{folder.path + kPrevious};
  if (!with_work || !files->Stat(folder.work()).ok()) {
    MUSTER_RETURN_IF_ERROR(control::FindJobFolder(jobs, name).status());
  }
  MUSTER_RETURN_IF_ERROR(Remove(folder, with_work));
  if (!files->Stat(before.path).ok()) return absl::OkStatus();
  return Remove(before, with_work);
}

// Removes the record of a job elsewhere, wherever the job is now.
absl::Status Forget(const std::string& jobs, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto folder, control::FindJobFolder(jobs, name));
  MUSTER_ASSIGN_OR_RETURN(const bool is_local, IsLocal(folder));
  if (is_local) {
    return absl::FailedPreconditionError(
        StrCat("the job ", name, " is one of this machine: muster rm without --forget"));
  }
  MUSTER_RETURN_IF_ERROR(files::OpenFileSystems()->RemoveAll(folder.path));
  std::printf("%s\n", name.c_str());
  return absl::OkStatus();
}

// Returns when the job ended; for a lost job, when its journal was last written; nullopt while it
// runs.
absl::StatusOr<std::optional<double>> FindEnd(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto place, OpenJobIn(folder));
  if (!place->WaitForEnd(0)) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const Json job, place->Describe());
  JsonFields fields(job, "job");
  if (HasEnded(job)) return fields.Number("completion_time", 0);
  if (!fields.Bool("lost", false)) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info,
                          files::OpenFileSystems()->Stat(folder.journal()));
  return static_cast<double>(info.modified_ns) * 1e-9;
}

// Removes jobs of this machine. Reports those that cannot be read or removed, and continues with
// the others.
absl::Status RemoveOlder(const std::string& jobs, double seconds, bool with_work) {
  const auto files = files::OpenFileSystems();
  const double before = SystemClock().WallSeconds() - seconds;
  MUSTER_ASSIGN_OR_RETURN(const auto names, files->List(jobs));
  bool failed = false;
  for (const std::string& name : names) {
    const control::JobFolder folder{io::JoinPath(jobs, name)};
    if (!files->Stat(folder.journal()).ok() && !files->Stat(folder.place()).ok()) continue;
    const auto end = FindEnd(folder);
    absl::Status status = end.status();
    if (absl::IsNotFound(status)) {  // it was removed from its cluster
      status = Forget(jobs, name);
      if (status.ok()) continue;
    }
    if (end.ok() && (!*end || **end > before)) continue;
    if (status.ok()) status = Remove(folder, with_work);
    if (status.ok()) continue;
    failed = true;
    SayOfJob(StrCat(name, " stays: ", ToStd(status.message())));
  }
  return failed ? absl::AbortedError("not all could be removed") : absl::OkStatus();
}

// Jobs of a cluster, and their records on this machine where there are any.
absl::Status RemoveElsewhere(const RmFlags& flags) {
  for (const std::string& name : flags.jobs) {
    MUSTER_ASSIGN_OR_RETURN(const auto place, OpenElsewhere(flags.where, name));
    MUSTER_RETURN_IF_ERROR(place->Remove(flags.with_work).status());
    // A record of another cluster's job of this name stays, even if that does not answer now.
    ForgetIfGone(name).IgnoreError();
    std::printf("%s\n", name.c_str());
  }
  return absl::OkStatus();
}

absl::Status RemoveJobs(const RmFlags& flags) {
  if (flags.jobs.empty() == flags.older_than.empty()) {
    throw CLI::ValidationError("rm", "give the names of jobs, or --older-than AGE");
  }
  if (flags.where.is_elsewhere()) return RemoveElsewhere(flags);
  MUSTER_ASSIGN_OR_RETURN(const std::string jobs, control::JobsFolder());
  if (!flags.older_than.empty()) {
    const auto age = ParseAge(flags.older_than);
    if (!age.ok()) {
      throw CLI::ValidationError("--older-than", std::string(ToStd(age.status().message())));
    }
    if (!files::OpenFileSystems()->Stat(jobs).ok()) return absl::OkStatus();
    return RemoveOlder(jobs, *age, flags.with_work);
  }
  absl::Status result;
  for (const std::string& name : flags.jobs) {
    const absl::Status removed =
        flags.forget ? Forget(jobs, name) : RemoveByName(jobs, name, flags.with_work);
    if (removed.ok()) continue;
    if (!result.ok()) SayOfJob(std::string(ToStd(result.message())));
    result = removed;
  }
  return result;
}

}  // namespace

void AddRm(CLI::App& app) {
  const auto flags = std::make_shared<RmFlags>();
  CLI::App* const verb =
      app.add_subcommand("rm", "Remove jobs that have ended: record, logs and staged files");
  verb->footer(
      "Examples:\n"
      "  muster rm train-5f3a1\n"
      "  muster rm --older-than 7d");
  verb->add_option("job", flags->jobs, "Their names, as muster list shows them")
      ->check(JobNameError)
      ->type_name("JOB");
  verb->add_option(
      "--older-than", flags->older_than,
      "All jobs that ended longer ago than this, such as 7d or 12h; running jobs stay");
  verb->add_flag("--with-work", flags->with_work,
                 "Also remove work folders with files that were not staged (default: they stay)");
  verb->add_flag("--forget", flags->forget,
                 "Remove only this machine's records of jobs elsewhere, as when their cluster is "
                 "gone");
  AddWhereFlags(*verb, &flags->where);
  verb->get_option("--on")->excludes("--older-than")->excludes("--forget");
  verb->get_option("--forget")->excludes("--older-than")->excludes("--with-work");
  verb->callback([flags] { FailUnlessOk(RemoveJobs(*flags)); });
}

}  // namespace muster::cli
