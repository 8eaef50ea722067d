// A program started by this process: what it inherits and how it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

class Child;

// How a program ended. Exactly one of code and signal is meaningful.
struct ExitInfo {
  int code = 0;    // exit code, when signal is 0
  int signal = 0;  // the signal that ended it, else 0
  bool core_dumped = false;
  // Totals of the program and of the children that it waited for.
  double user_seconds = 0, system_seconds = 0;
  int64_t max_rss_bytes = 0;  // the largest of them

  bool ok() const { return code == 0 && signal == 0; }
};

// "exit code 3", "signal 9 (Killed)", "signal 11 (Segmentation fault), core dumped".
std::string DescribeExit(const ExitInfo& exit);

// A descriptor of the starter that the program inherits under the number `to`.
struct InheritedDescriptor {
  int from = -1;
  int to = -1;
};

// A program to start. Plain data; descriptors in it stay the caller's and must be open during
// Start.
struct ChildSpec {
  // argv[0] without a slash is looked up in the PATH of `environment`; a relative one with a slash
  // is relative to `working_directory`.
  std::vector<std::string> argv = {};
  std::vector<std::string> environment = {};  // NAME=VALUE; the complete environment
  std::string working_directory = {};         // empty: the starter's

  int stdin_fd = -1;  // -1: /dev/null
  int stdout_fd = 1, stderr_fd = 2;
  std::vector<InheritedDescriptor> inherited = {};  // besides those; nothing else is inherited

  enum class Group {
    kOwnSession,  // a session and group of its own: no terminal, no Ctrl-C from the starter's
    kOwnGroup,    // a group of its own in the starter's session
    kStarters,
  };
  Group group = Group::kOwnSession;

  // Sent by the kernel to the program when the THREAD that called Start ends, also by kill -9 of
  // its process; 0: none. So call Start on a thread that lives as long as the program is needed. It
  // applies to the program itself, not to what the program starts (see ProcessTree and FindMarked),
  // and not past an exec of a setuid program.
  int parent_death_signal = 9;

  std::vector<int> cpus = {};  // the cores that it may run on; empty: the starter's
  // A descriptor of a cgroup's cgroup.procs, which the program joins before it runs
  // (MemoryLimit::procs_fd); -1: it stays in the starter's cgroup.
  int cgroup_procs_fd = -1;
};

// The entries of this process's environment, for ChildSpec::environment.
std::vector<std::string> CurrentEnvironment();
// Sets NAME=VALUE, replacing all entries of that name.
void SetEnvironment(std::string_view name, std::string_view value,
                    std::vector<std::string>* environment);
// The value of the first entry of that name.
std::optional<std::string> FindEnvironment(std::string_view name,
                                           const std::vector<std::string>& environment);

// The children of a ProcessTree that have an owner to wait for them. Thread-safe.
class ChildSet {
 public:
  // Starts a child under the set's lock, so that no child can be missing from the set.
  absl::StatusOr<std::unique_ptr<Child>> Start(const std::shared_ptr<ChildSet>& self,
                                               const ChildSpec& spec);
  // Calls wait(pid) for each of `ended` that is not a member. `wait` returns the CPU seconds of the
  // process, or less than 0 if it could not be waited for. Returns how many were waited for.
  int WaitForStrangers(const std::vector<pid_t>& ended, double (*wait)(pid_t));
  void Remove(pid_t pid, double cpu_seconds);
  // The CPU seconds of all processes that were waited for.
  double reaped_cpu_seconds() const;

 private:
  mutable Mutex mutex_;
  std::set<pid_t> members_ ABSL_GUARDED_BY(mutex_);
  double reaped_cpu_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A started program. It is waited for exactly once, by this object; destroying an object whose
// program still runs kills the program (SIGKILL, to its group if it leads one) and waits. One
// thread at a time; Signal and pidfd from any thread while the object lives.
//
// The program starts with default signal handlers and an empty signal mask, whatever the
// starter's are.
class Child {
 public:
  // Returns when the program runs, or says why it cannot: NOT_FOUND (no such program, no such
  // working directory, no interpreter named by its #! line), PERMISSION_DENIED (not executable, a
  // directory), INVALID_ARGUMENT (an impossible spec, a file that is not a program),
  // RESOURCE_EXHAUSTED (no memory, processes or descriptors left). The message names the step, the
  // file and what to do.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const ChildSpec& spec);

  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Readable, for poll, once the program has ended; the caller then calls Wait(0). Valid as long
  // as the object.
  int pidfd() const { return pidfd_.get(); }

  // Waits until the program has ended, which releases its pid; DEADLINE_EXCEEDED after
  // `timeout_seconds`. May be called again after the end. FAILED_PRECONDITION if somebody else has
  // waited for it (SIGCHLD ignored, waitpid(-1)): how it ended is then unknown.
  absl::StatusOr<ExitInfo> Wait(double timeout_seconds);

  // Lets the program continue without an owner: for a starter that is about to end. Neither Wait
  // nor the destructor does anything from now on; Wait returns FAILED_PRECONDITION.
  void LetGo();

  // Signals the program alone. OK if it has ended.
  absl::Status Signal(int signal_number) const;
  // Signals the group that it leads (Group::kStarters: the program alone). OK if it has ended.
  absl::Status SignalGroup(int signal_number) const;

 private:
  friend class ChildSet;
  Child(pid_t pid, Descriptor pidfd, bool leads_group);
  absl::Status Reap();

  pid_t pid_;
  Descriptor pidfd_;
  bool leads_group_;
  bool reaped_ = false;
  std::shared_ptr<ChildSet> set_;  // of the tree through which it was started, or null
  absl::Status wait_error_;
  ExitInfo exit_;
};

}  // namespace muster::process
