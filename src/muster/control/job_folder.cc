#include "muster/control/job_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/control/place_record.h"
#include "muster/files/file_systems.h"

namespace muster::control {
namespace {

constexpr mode_t kPrivateFolder = 0700, kPrivateFile = 0600;
constexpr std::string_view kPrevious = ".previous";

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::string_view kOtherFolder =
    "; jobs are recorded there: set MUSTER_HOME to a folder of your own";

absl::Status MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), kPrivateFolder) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, StrCat("cannot make the folder ", path));
}

struct flock WholeFile() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return whole;
}

std::optional<int> GetHolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct flock whole = WholeFile();
  std::optional<int> pid;
  if (fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK) {
    char text[16] = {};
    pid = pread(fd, text, sizeof text - 1, 0) > 0 ? std::atoi(text) : 0;
  }
  close(fd);
  return pid;
}

bool IsJob(io::FileSystem& files, const JobFolder& folder) {
  return files.Stat(folder.journal()).ok() || files.Stat(folder.place()).ok();
}

// A folder of a job that ended makes way for the next job of its name.
absl::Status CheckReplaceable(const JobFolder& folder, const std::string& name) {
  const auto coordinator = LivingCoordinator(folder);
  if (const auto pid = coordinator ? coordinator : LivingSupervisor(folder)) {
    return absl::AlreadyExistsError(
        StrCat("a job ", name, " runs already (pid ", *pid, "): muster stop ", name));
  }
  MUSTER_ASSIGN_OR_RETURN(const PlaceRecord record, ReadPlaceRecord(folder));
  if (record.kind == kLocalKind) return absl::OkStatus();
  return absl::AlreadyExistsError(
      StrCat("a job ", name, " was submitted to a place of kind '", record.kind,
             "', and may run there: choose another --name, or remove it with muster rm ", name));
}

// A job without room for its journal would wait for it before it starts a task. Task logs spare
// three times as much on the smallest disk (a twentieth of 4 MiB, see LogFileOptions).
absl::Status CheckRoom(const std::string& folder) {
  constexpr uint64_t kLeastBytes = uint64_t{64} << 10;
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return absl::OkStatus();
  const uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  const uint64_t free = blocks * disk.f_frsize;
  if (free >= kLeastBytes) return absl::OkStatus();
  return ErrnoStatus(ENOSPC, StrCat("cannot record a job in ", folder, ", where ", free,
                                    " bytes are free and it needs ", kLeastBytes,
                                    " (free some, or set MUSTER_HOME to another folder)"));
}

}  // namespace

absl::Status CheckJobName(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos || name.empty() || name[0] == '.';
  if (!is_path) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("'", name, "' is not a valid job name: a name has letters, digits, '-' and '_'"));
}

std::string JobFolder::agent_log(job::TaskId task) const {
  return StrCat(path, "/agents/", job::TaskName(task), ".log");
}

std::string JobFolder::task_log(job::TaskId task) const {
  return StrCat(path, "/logs/", job::TaskName(task), ".log");
}

absl::StatusOr<std::string> JobsFolder() {
  if (const auto home = FromEnvironment("MUSTER_HOME"); !home.empty()) return home + "/jobs";
  // A relative one does not count (XDG Base Directory Specification 0.8).
  if (const auto xdg = FromEnvironment("XDG_STATE_HOME"); xdg.starts_with('/')) {
    return xdg + "/muster/jobs";
  }
  const auto home = FromEnvironment("HOME");
  if (home.empty()) {
    return absl::FailedPreconditionError(
        "there is no folder for jobs: set MUSTER_HOME to a folder of your own");
  }
  return home + "/.local/state/muster/jobs";
}

absl::StatusOr<JobFolder> MakeJobFolder(const std::string& jobs, const std::string& name) {
  MUSTER_RETURN_IF_ERROR(CheckJobName(name));
  const auto files = files::OpenFileSystems();
  if (const absl::Status made = files->MakeFolders(jobs); !made.ok()) {
    return absl::Status(made.code(), StrCat(made.message(), kOtherFolder));
  }
  char* const real = realpath(jobs.c_str(), nullptr);
  if (real == nullptr) return ErrnoStatus(errno, StrCat("cannot find ", jobs));
  const std::string real_jobs = real;
  std::free(real);  // NOLINT: realpath's contract
  const JobFolder folder{StrCat(real_jobs, "/", name)};
  const bool exists = files->Stat(folder.path).ok();
  if (exists) MUSTER_RETURN_IF_ERROR(CheckReplaceable(folder, name));
  MUSTER_RETURN_IF_ERROR(CheckRoom(real_jobs));
  if (exists) {
    const std::string previous = StrCat(folder.path, kPrevious);
    MUSTER_RETURN_IF_ERROR(files->RemoveAll(previous));
    MUSTER_RETURN_IF_ERROR(files->Rename(folder.path, previous));
  }
  MUSTER_RETURN_IF_ERROR(MakePrivate(folder.path));
  MUSTER_RETURN_IF_ERROR(MakePrivate(folder.path + "/agents"));
  MUSTER_RETURN_IF_ERROR(MakePrivate(folder.path + "/logs"));
  return folder;
}

absl::StatusOr<JobFolder> FindJobFolder(const std::string& jobs, const std::string& name) {
  MUSTER_RETURN_IF_ERROR(CheckJobName(name));
  const auto files = files::OpenFileSystems();
  const JobFolder folder{io::JoinPath(jobs, name)};
  if (IsJob(*files, folder)) return folder;
  const std::vector<std::string> known = ListJobs(jobs);
  return absl::NotFoundError(StrCat("there is no job ", name, " in ", jobs,
                                    known.empty() ? " (it is empty)" : DidYouMean(name, known)));
}

std::vector<std::string> ListJobs(const std::string& jobs) {
  const auto files = files::OpenFileSystems();
  std::vector<std::string> found;
  for (const std::string& name : files->List(jobs).value_or(std::vector<std::string>())) {
    const JobFolder folder{io::JoinPath(jobs, name)};
    if (!absl::EndsWith(name, ToAbsl(kPrevious)) && IsJob(*files, folder)) found.push_back(name);
  }
  return found;
}

// These are locks of open file descriptions. A process that only looks takes none, so that looking
// never keeps another process from taking the lock.
absl::StatusOr<JobLock> JobLock::Take(const std::string& path) {
  JobLock lock(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kPrivateFile));
  if (lock.fd_ < 0) return ErrnoStatus(errno, StrCat("cannot open ", path));
  struct flock whole = WholeFile();
  if (fcntl(lock.fd_, F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return ErrnoStatus(errno, StrCat("cannot lock ", path));
    return absl::AlreadyExistsError(StrCat(path, ": another running process holds it"));
  }
  const std::string pid = StrCat(getpid(), "\n");
  if (ftruncate(lock.fd_, 0) != 0 ||
      pwrite(lock.fd_, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus(errno, StrCat("cannot write ", path));
  }
  return lock;
}

JobLock::~JobLock() {
  if (fd_ >= 0) close(fd_);
}

std::optional<int> LivingCoordinator(const JobFolder& folder) { return GetHolder(folder.lock()); }

std::optional<int> LivingSupervisor(const JobFolder& folder) {
  return GetHolder(folder.supervisor_lock());
}

}  // namespace muster::control
