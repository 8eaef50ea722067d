#include "muster/launch/local/job_removal.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "muster/control/coordinator.h"
#include "muster/control/incarnation.h"
#include "muster/control/journal.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"

namespace muster::launch::local {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStagedLink = "../../staged/";  // as staging.cc makes them

absl::Status RemovalError(const std::error_code& error, const fs::path& path) {
  return ErrnoStatus(error.value(), StrCat("cannot remove ", path.string()));
}

// Removes a folder with all below it; links are not followed.
absl::Status RemoveTree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? RemovalError(error, path) : absl::OkStatus();
}

std::vector<fs::path> GetEntries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

bool IsStagedLink(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return !error && target.string().starts_with(kStagedLink);
}

// Removes links to staged files, and folders that are then empty. Returns true if something else is
// left.
absl::StatusOr<bool> TidyWork(const fs::path& work) {
  bool left = false;
  for (const fs::path& task : GetEntries(work)) {
    for (const fs::path& entry : GetEntries(task)) {
      if (IsStagedLink(entry)) MUSTER_RETURN_IF_ERROR(RemoveTree(entry));
    }
    std::error_code error;
    fs::remove(task, error);  // refuses a folder that is not empty
    left = left || fs::exists(fs::symlink_status(task, error));
  }
  return left;
}

// Takes the locks of the job's folder, so that no process begins to run the job meanwhile.
absl::StatusOr<std::vector<control::JobLock>> AcquireLocks(const control::JobFolder& folder) {
  std::vector<control::JobLock> locks;
  for (const std::string& path : {folder.supervisor_lock(), folder.lock()}) {
    auto lock = control::JobLock::Take(path);
    if (absl::IsAlreadyExists(lock.status())) {
      const std::string name = io::Basename(folder.path);
      return absl::FailedPreconditionError(
          StrCat("the job ", name, " runs: muster stop ", name, " ends it"));
    }
    MUSTER_RETURN_IF_ERROR(lock.status());
    locks.push_back(*std::move(lock));
  }
  return locks;
}

}  // namespace

bool AnyAgentLives(const control::JobFolder& folder) {
  const auto marks = control::ListIncarnations(folder.path);
  if (!marks.ok()) return false;
  return std::any_of(marks->begin(), marks->end(), [&](const control::IncarnationId& id) {
    const auto mark = control::LookAtIncarnation(folder.path, id);
    return mark.ok() && mark->state == control::IncarnationMark::State::kHeld;
  });
}

absl::StatusOr<std::string> RemoveJob(const control::JobFolder& folder, bool with_work) {
  MUSTER_ASSIGN_OR_RETURN(const auto locks, AcquireLocks(folder));
  if (AnyAgentLives(folder)) {
    const std::string name = io::Basename(folder.path);
    return absl::FailedPreconditionError(
        StrCat("tasks of the job ", name, " still run: muster stop ", name, " ends them"));
  }
  bool keeps_work = false;
  if (!with_work) {
    MUSTER_ASSIGN_OR_RETURN(keeps_work, TidyWork(folder.work()));
  }
  MUSTER_RETURN_IF_ERROR(RemoveTree(folder.journal()));  // from here on it is no job any more
  for (const fs::path& entry : GetEntries(folder.path)) {
    if (keeps_work && entry == fs::path(folder.work())) continue;
    MUSTER_RETURN_IF_ERROR(RemoveTree(entry));
  }
  if (keeps_work) return folder.work();
  MUSTER_RETURN_IF_ERROR(RemoveTree(folder.path));
  return std::string();
}

absl::StatusOr<bool> RemoveIfExpired(const control::JobFolder& folder, double now,
                                     std::string* kept) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const control::JournalState journal,
                          control::ReadJournal(*files, folder.journal()));
  MUSTER_ASSIGN_OR_RETURN(const job::JobSpec spec, control::ParseJobSpec(journal.state));
  if (!spec.ttl_seconds) return false;
  formats::JsonFields fields(journal.state, folder.journal());
  MUSTER_ASSIGN_OR_RETURN(const job::JobStatus status,
                          control::StatusFromJson(fields.Object("status"), folder.journal()));
  const double end = status.completion_time + static_cast<double>(*spec.ttl_seconds);
  if (!status.ended() || now < end) return false;
  MUSTER_ASSIGN_OR_RETURN(*kept, RemoveJob(folder, /*with_work=*/false));
  return true;
}

}  // namespace muster::launch::local
