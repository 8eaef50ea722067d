#include "muster/process/child.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "muster/process/deadline.h"
#include "muster/process/pidfd.h"
#include "muster/process/spawn.h"

namespace muster::process {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

ExitInfo MakeExitInfo(int wait_status, const rusage& usage) {
  ExitInfo exit;
  if (WIFSIGNALED(wait_status)) {
    exit.signal = WTERMSIG(wait_status);
    exit.core_dumped = WCOREDUMP(wait_status);
  } else {
    exit.code = WEXITSTATUS(wait_status);
  }
  exit.user_seconds = Seconds(usage.ru_utime);
  exit.system_seconds = Seconds(usage.ru_stime);
  exit.max_rss_bytes = int64_t{usage.ru_maxrss} * 1024;
  return exit;
}

bool IsEntry(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

std::string DescribeExit(const ExitInfo& exit) {
  if (exit.signal == 0) return StrCat("exit code ", exit.code);
  const char* name = sigdescr_np(exit.signal);
  return StrCat("signal ", exit.signal, " (", name != nullptr ? name : "real-time", ")",
                exit.core_dumped ? ", core dumped" : "");
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

void SetEnvironment(std::string_view name, std::string_view value,
                    std::vector<std::string>* environment) {
  std::erase_if(*environment, [&](const std::string& entry) { return IsEntry(entry, name); });
  environment->push_back(StrCat(name, "=", value));
}

std::optional<std::string> FindEnvironment(std::string_view name,
                                           const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (IsEntry(entry, name)) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const ChildSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(Spawned spawned, Spawn(spec));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Child>(
      new Child(spawned.pid, std::move(spawned.pidfd), spec.group != ChildSpec::Group::kStarters));
}

Child::Child(pid_t pid, Descriptor pidfd, bool leads_group)
    : pid_(pid), pidfd_(std::move(pidfd)), leads_group_(leads_group) {}

Child::~Child() {
  if (reaped_) return;
  // A destructor has no caller to tell; kill can only fail for a process that has ended.
  SignalGroup(SIGKILL).IgnoreError();
  Reap().IgnoreError();
}

absl::Status Child::Reap() {
  int wait_status = 0;
  rusage usage = {};
  pid_t got;
  do {
    got = wait4(pid_, &wait_status, 0, &usage);
  } while (got < 0 && errno == EINTR);
  reaped_ = true;
  if (got < 0) {
    wait_error_ = absl::FailedPreconditionError(
        StrCat("wait for process ", pid_,
               ": somebody else has waited for it (SIGCHLD ignored?): "
               "how it ended is lost"));
  } else {
    exit_ = MakeExitInfo(wait_status, usage);
  }
  if (set_ != nullptr) set_->Remove(pid_, exit_.user_seconds + exit_.system_seconds);
  return wait_error_;
}

absl::StatusOr<ExitInfo> Child::Wait(double timeout_seconds) {
  if (!reaped_) {
    const int fd = pidfd_.get();
    if (!PollReadable(&fd, 1, Deadline::After(timeout_seconds))) {
      return absl::DeadlineExceededError(
          StrCat("process ", pid_, " still runs after ", timeout_seconds, " s"));
    }
    Reap().IgnoreError();
  }
  if (!wait_error_.ok()) return wait_error_;
  return exit_;
}

void Child::LetGo() {
  if (reaped_) return;
  reaped_ = true;
  wait_error_ = absl::FailedPreconditionError(
      StrCat("wait for process ", pid_, ": it was let go: how it ends is not known here"));
}

absl::Status Child::Signal(int signal_number) const {
  if (SendPidfd(pidfd_.get(), signal_number) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == ESRCH) return absl::OkStatus();
  return ErrnoStatus(error, StrCat("send signal ", signal_number, " to process ", pid_));
}

absl::Status Child::SignalGroup(int signal_number) const {
  if (!leads_group_) return Signal(signal_number);
  // The number of a group stays taken until its leader has been waited for.
  if (reaped_ || kill(-pid_, signal_number) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == ESRCH) return absl::OkStatus();
  return ErrnoStatus(error, StrCat("send signal ", signal_number, " to process group ", pid_));
}

absl::StatusOr<std::unique_ptr<Child>> ChildSet::Start(const std::shared_ptr<ChildSet>& self,
                                                       const ChildSpec& spec) {
  MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Child> child, Child::Start(spec));
  members_.insert(child->pid_);
  child->set_ = self;
  return child;
}

int ChildSet::WaitForStrangers(const std::vector<pid_t>& ended, double (*wait)(pid_t)) {
  MutexLock lock(&mutex_);
  int waited = 0;
  for (pid_t pid : ended) {
    if (members_.contains(pid)) continue;
    const double cpu_seconds = wait(pid);
    if (cpu_seconds < 0) continue;
    reaped_cpu_seconds_ += cpu_seconds;
    ++waited;
  }
  return waited;
}

void ChildSet::Remove(pid_t pid, double cpu_seconds) {
  MutexLock lock(&mutex_);
  members_.erase(pid);
  reaped_cpu_seconds_ += cpu_seconds;
}

double ChildSet::reaped_cpu_seconds() const {
  MutexLock lock(&mutex_);
  return reaped_cpu_seconds_;
}

}  // namespace muster::process
