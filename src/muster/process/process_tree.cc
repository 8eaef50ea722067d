#include "muster/process/process_tree.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <set>
#include <utility>

#include "muster/process/deadline.h"
#include "muster/process/pidfd.h"

namespace muster::process {
namespace {

constexpr size_t kMaxNamed = 5;     // processes in a message
constexpr size_t kMaxWatched = 64;  // descriptors held at a time
constexpr int kBlindWaitMillis = 20;

// Identifies one process for good, since its pid may be given to another one.
using Identity = std::pair<pid_t, uint64_t>;

// Ends the processes that `find` finds, until it finds none.
class Ender {
 public:
  Ender(std::function<std::vector<ProcessStat>()> find, std::function<void()> reap)
      : find_(std::move(find)), reap_(std::move(reap)) {}

  absl::StatusOr<StopReport> Run(const StopOptions& options) {
    const Deadline grace = Deadline::After(options.grace_seconds);
    while (options.grace_seconds > 0 && !grace.expired()) {
      if (SignalAll(SIGTERM, &report_.told) == 0) return report_;
      WaitForAll(grace);
    }
    signalled_.clear();
    const Deadline end = Deadline::After(options.kill_wait_seconds);
    while (true) {
      if (SignalAll(SIGKILL, &report_.killed) == 0) return report_;
      if (end.expired()) return StillThere(options.kill_wait_seconds);
      WaitForAll(end);
    }
  }

 private:
  // Sends the signal once to each process. Returns how many processes there are.
  size_t SignalAll(int number, int* count) {
    processes_ = find_();
    descriptors_.clear();
    for (const ProcessStat& process : processes_) {
      Descriptor descriptor = OpenProcess(process);
      if (!descriptor.valid()) continue;
      if (!signalled_.contains({process.pid, process.start_ticks}) &&
          SendPidfd(descriptor.get(), number) == 0) {
        signalled_.insert({process.pid, process.start_ticks});
        ++*count;
        // A stopped process can end only after it continues.
        if (number != SIGKILL) SendPidfd(descriptor.get(), SIGCONT);
      }
      if (descriptors_.size() < kMaxWatched) descriptors_.push_back(std::move(descriptor));
    }
    return processes_.size();
  }

  // Waits until the watched processes have ended, or for the deadline. The caller then looks again,
  // since others may have been started.
  void WaitForAll(Deadline deadline) {
    for (const Descriptor& descriptor : descriptors_) {
      const int fd = descriptor.get();
      if (!PollReadable(&fd, 1, deadline)) break;
    }
    // No descriptor could be had, so there is nothing to wait for: look again after a while.
    if (descriptors_.empty()) poll(nullptr, 0, kBlindWaitMillis);
    reap_();
  }

  absl::Status StillThere(double seconds) const {
    std::string names;
    for (size_t i = 0; i < std::min(processes_.size(), kMaxNamed); ++i) {
      const ProcessStat& process = processes_[i];
      names += StrCat(i == 0 ? "" : ", ", process.pid, " (", CommandLine(process.pid), ", state ",
                      std::string(1, process.state), ")");
    }
    return absl::DeadlineExceededError(
        StrCat(processes_.size(), " processes are there ", seconds, " s after SIGKILL: ", names,
               ": state D waits for a device or a network file system; another user's process "
               "cannot be ended from here"));
  }

  std::function<std::vector<ProcessStat>()> find_;
  std::function<void()> reap_;
  std::vector<ProcessStat> processes_;
  std::vector<Descriptor> descriptors_;
  std::set<Identity> signalled_;
  StopReport report_;
};

double WaitForOrphan(pid_t pid) {
  rusage usage = {};
  if (wait4(pid, nullptr, WNOHANG, &usage) != pid) return -1;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

bool AnyChildEnded() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

void EraseEnded(std::vector<ProcessStat>* processes) {
  std::erase_if(*processes, [](const ProcessStat& process) { return process.ended(); });
}

// Returns the marked processes and all processes below them, marked or not.
std::vector<ProcessStat> MarkedTrees(std::string_view entry) {
  std::vector<ProcessStat> found = FindMarked(entry);
  if (found.empty()) return found;
  std::vector<pid_t> roots;
  for (const ProcessStat& process : found) roots.push_back(process.pid);
  for (ProcessStat& below : Descendants(roots)) {
    if (std::find(roots.begin(), roots.end(), below.pid) == roots.end() && below.pid != getpid()) {
      found.push_back(std::move(below));
    }
  }
  EraseEnded(&found);
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessTree>> ProcessTree::Create() {
  int already = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &already) == 0 && already != 0) {
    return absl::FailedPreconditionError(
        "collect orphaned processes: another ProcessTree of this process does so");
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    const int error = errno;
    return ErrnoStatus(error, "collect orphaned processes (PR_SET_CHILD_SUBREAPER)");
  }
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<ProcessTree>(new ProcessTree());
}

ProcessTree::~ProcessTree() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

absl::StatusOr<std::unique_ptr<Child>> ProcessTree::Start(const ChildSpec& spec) {
  return children_->Start(children_, spec);
}

std::vector<ProcessStat> ProcessTree::Running() const {
  std::vector<ProcessStat> found = Descendants({getpid()});
  EraseEnded(&found);
  return found;
}

int ProcessTree::ReapOrphans() {
  if (!AnyChildEnded()) return 0;
  std::vector<pid_t> ended;
  for (pid_t pid : Children(getpid())) {
    if (const auto stat = ReadStat(pid); stat && stat->ended()) ended.push_back(pid);
  }
  return children_->WaitForStrangers(ended, WaitForOrphan);
}

absl::StatusOr<StopReport> ProcessTree::Stop(const StopOptions& options) {
  return Ender([this] { return Running(); }, [this] { ReapOrphans(); }).Run(options);
}

TreeUsage ProcessTree::Usage(bool with_pss) const {
  TreeUsage usage;
  for (const ProcessStat& process : QuickDescendants(getpid())) {
    usage.cpu_seconds += process.cpu_seconds + process.children_cpu_seconds;
    if (process.ended()) continue;
    ++usage.processes;
    usage.threads += process.threads;
    if (with_pss) usage.pss_bytes += PssBytes(process.pid).value_or(0);
  }
  usage.cpu_seconds += children_->reaped_cpu_seconds();
  return usage;
}

absl::StatusOr<StopReport> EndMarked(std::string_view entry, const StopOptions& options) {
  return Ender([entry] { return MarkedTrees(entry); }, [] {}).Run(options);
}

}  // namespace muster::process
