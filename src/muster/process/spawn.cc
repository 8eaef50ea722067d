#include "muster/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/process/file_limit.h"
#include "muster/process/pidfd.h"

namespace muster::process {
namespace {

constexpr int kMaxSignal = 64;
constexpr int kFirstFreeDescriptor = 3;
constexpr int kFallbackDescriptors = 4096;  // marked one by one where close_range is missing

enum class Step : int {
  kNone,
  kSession,
  kDeathSignal,
  kCgroup,
  kCpus,
  kWorkingDirectory,
  kDescriptors,
  kExec,
};

// The message that the child sends through the pipe if it cannot become the program.
struct Failure {
  Step step = Step::kNone;
  int error_number = 0;
};

// All that the child needs, made before the fork: after a fork in a process with threads only
// async-signal-safe calls are allowed, and no memory can be allocated.
struct Plan {
  const ChildSpec* spec = nullptr;
  std::string program;
  std::vector<char*> argv, environment;
  std::vector<InheritedDescriptor> descriptors;  // `from` is set in the child, in place
  cpu_set_t* cpus = nullptr;
  size_t cpus_bytes = 0;
  pid_t starter = -1;
  int failure_fd = -1;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (cpus != nullptr) CPU_FREE(cpus);
  }
};

// ---- in the child ----

void ResetSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number <= kMaxSignal; ++number) sigaction(number, &action, nullptr);
}

bool EnterGroup(ChildSpec::Group group) {
  switch (group) {
    case ChildSpec::Group::kOwnSession:
      return setsid() >= 0;
    case ChildSpec::Group::kOwnGroup:
      return setpgid(0, 0) == 0;
    case ChildSpec::Group::kStarters:
      return true;
  }
  return true;
}

bool SetDeathSignal(const Plan& plan) {
  if (plan.spec->parent_death_signal == 0) return true;
  if (prctl(PR_SET_PDEATHSIG, plan.spec->parent_death_signal) != 0) return false;
  // The starter may have died before the call: then nobody would send the signal.
  if (getppid() != plan.starter) _exit(127);
  return true;
}

bool JoinCgroup(int procs_fd) { return procs_fd < 0 || write(procs_fd, "0", 1) == 1; }

void MarkAllCloseOnExec() {
  if (syscall(SYS_close_range, kFirstFreeDescriptor, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = kFirstFreeDescriptor; fd < kFallbackDescriptors; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

// The sources are first moved above every target, so that no dup2 overwrites one that is still
// needed.
bool PlaceDescriptors(Plan* plan) {
  int above = kFirstFreeDescriptor;
  for (const InheritedDescriptor& d : plan->descriptors) above = std::max(above, d.to + 1);
  if ((plan->failure_fd = fcntl(plan->failure_fd, F_DUPFD_CLOEXEC, above)) < 0) _exit(127);
  for (InheritedDescriptor& d : plan->descriptors) {
    d.from =
        d.from >= 0 ? fcntl(d.from, F_DUPFD_CLOEXEC, above) : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (d.from >= 0 && d.from < above) d.from = fcntl(d.from, F_DUPFD_CLOEXEC, above);
    if (d.from < 0) return false;
  }
  MarkAllCloseOnExec();
  for (const InheritedDescriptor& d : plan->descriptors) {
    if (dup2(d.from, d.to) < 0) return false;
  }
  return true;
}

Step Prepare(Plan* plan) {
  const ChildSpec& spec = *plan->spec;
  if (!EnterGroup(spec.group)) return Step::kSession;
  if (!SetDeathSignal(*plan)) return Step::kDeathSignal;
  if (!JoinCgroup(spec.cgroup_procs_fd)) return Step::kCgroup;
  if (plan->cpus != nullptr && sched_setaffinity(0, plan->cpus_bytes, plan->cpus) != 0) {
    return Step::kCpus;
  }
  if (!spec.working_directory.empty() && chdir(spec.working_directory.c_str()) != 0) {
    return Step::kWorkingDirectory;
  }
  if (!PlaceDescriptors(plan)) return Step::kDescriptors;
  return Step::kNone;
}

[[noreturn]] void RunChild(Plan* plan, const sigset_t& empty_mask) {
  Failure failure{.step = Prepare(plan), .error_number = errno};
  if (failure.step == Step::kNone) {
    ResetSignals();
    sigprocmask(SIG_SETMASK, &empty_mask, nullptr);
    RestoreFileLimit();
    execve(plan->program.c_str(), plan->argv.data(), plan->environment.data());
    failure = {.step = Step::kExec, .error_number = errno};
  }
  const ssize_t written = write(plan->failure_fd, &failure, sizeof failure);
  _exit(written == sizeof failure ? 127 : 126);
}

// ---- in the starter ----

// Returns a path as the child will see it, to look at it from the starter.
std::string SeenFromHere(const ChildSpec& spec, const std::string& path) {
  if (path.starts_with('/') || spec.working_directory.empty()) return path;
  return StrCat(spec.working_directory, "/", path);
}

bool IsExecutableFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

absl::StatusOr<std::string> FindProgram(const ChildSpec& spec) {
  const std::string& name = spec.argv[0];
  if (name.find('/') != std::string::npos) return name;
  const std::string path = FindEnvironment("PATH", spec.environment).value_or("/usr/bin:/bin");
  std::string unusable;
  for (const std::string& folder : std::vector<std::string>(absl::StrSplit(path, ':'))) {
    std::string candidate = StrCat(folder.empty() ? "." : folder, "/", name);
    const std::string seen = SeenFromHere(spec, candidate);
    if (IsExecutableFile(seen)) return candidate;
    if (unusable.empty() && access(seen.c_str(), F_OK) == 0) unusable = candidate;
  }
  if (!unusable.empty()) {
    return absl::PermissionDeniedError(StrCat("start ", unusable,
                                              ": it is not an executable file: chmod +x it, or "
                                              "start it through its interpreter"));
  }
  return absl::NotFoundError(StrCat("start ", name, ": no such program in PATH (", path,
                                    "): install it, or name it by its path"));
}

bool HasNul(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& s) { return s.find('\0') != std::string::npos; });
}

absl::Status CheckSpec(const ChildSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty()) {
    return absl::InvalidArgumentError("start a program: it has no name: give a command");
  }
  if (HasNul(spec.argv) || HasNul(spec.environment) ||
      spec.working_directory.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(StrCat("start ", spec.argv[0].c_str(),
                                             ": a zero byte in its arguments, environment or "
                                             "working directory: remove it"));
  }
  for (const InheritedDescriptor& d : spec.inherited) {
    if (d.from >= 0 && d.to >= kFirstFreeDescriptor) continue;
    return absl::InvalidArgumentError(
        StrCat("start ", spec.argv[0], ": descriptor ", d.from, " cannot become ", d.to,
               " of the program: 0 to 2 are named by their own fields"));
  }
  return absl::OkStatus();
}

// exec takes pointers to char that it does not write through.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void PlanCpus(const std::vector<int>& cpus, Plan* plan) {
  if (cpus.empty()) return;
  const int highest = *std::max_element(cpus.begin(), cpus.end());
  plan->cpus = CPU_ALLOC(highest + 1);
  plan->cpus_bytes = CPU_ALLOC_SIZE(highest + 1);
  CPU_ZERO_S(plan->cpus_bytes, plan->cpus);
  for (int cpu : cpus) {
    if (cpu >= 0) CPU_SET_S(cpu, plan->cpus_bytes, plan->cpus);
  }
}

absl::Status MakePlan(const ChildSpec& spec, Plan* plan) {
  MUSTER_RETURN_IF_ERROR(CheckSpec(spec));
  struct stat info;
  if (const std::string& folder = spec.working_directory; !folder.empty()) {
    if (stat(folder.c_str(), &info) != 0) {
      const int error = errno;
      return ErrnoStatus(error, StrCat("start ", spec.argv[0], ": its working directory ", folder));
    }
    if (!S_ISDIR(info.st_mode)) {
      return absl::InvalidArgumentError(
          StrCat("start ", spec.argv[0], ": its working directory ", folder, " is no directory"));
    }
  }
  plan->spec = &spec;
  MUSTER_ASSIGN_OR_RETURN(plan->program, FindProgram(spec));
  plan->argv = Pointers(spec.argv);
  plan->environment = Pointers(spec.environment);
  plan->descriptors = spec.inherited;
  plan->descriptors.push_back({.from = spec.stdin_fd, .to = 0});
  plan->descriptors.push_back({.from = spec.stdout_fd, .to = 1});
  plan->descriptors.push_back({.from = spec.stderr_fd, .to = 2});
  PlanCpus(spec.cpus, plan);
  plan->starter = getpid();
  return absl::OkStatus();
}

// Returns the interpreter that a file's #! line names; empty if it has none.
std::string Interpreter(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char line[256];
  const ssize_t size = file.valid() ? read(file.get(), line, sizeof line) : 0;
  if (size < 2 || line[0] != '#' || line[1] != '!') return "";
  const std::string_view text(line + 2, static_cast<size_t>(size) - 2);
  const std::string_view first = text.substr(0, text.find('\n'));
  const size_t begin = first.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(first.substr(begin, first.find_first_of(" \t\r", begin) - begin));
}

absl::Status ExecStatus(const ChildSpec& spec, const std::string& program, int error_number) {
  const std::string seen = SeenFromHere(spec, program);
  const std::string what = StrCat("start ", program);
  switch (error_number) {
    case ENOENT:
      if (access(seen.c_str(), F_OK) != 0) break;
      if (const std::string interpreter = Interpreter(seen); !interpreter.empty()) {
        return absl::NotFoundError(StrCat(what, ": its first line names the interpreter ",
                                          interpreter,
                                          ", which is missing here (or the line ends "
                                          "in a carriage return): install it or mend the line"));
      }
      return absl::NotFoundError(
          StrCat(what,
                 ": the loader that it was linked for is missing: it was built for another "
                 "system"));
    case EACCES:
      return absl::PermissionDeniedError(StrCat(what,
                                                ": it is not an executable file: chmod +x it, or "
                                                "start it through its interpreter"));
    case ENOEXEC:
      return absl::InvalidArgumentError(
          StrCat(what,
                 ": it is no program of this machine and has no #! line: add one, such as "
                 "#!/bin/sh, or start it through its interpreter"));
    case E2BIG:
      return absl::InvalidArgumentError(
          StrCat(what, ": its arguments and environment are too long: shorten them"));
    default:
      break;
  }
  return ErrnoStatus(error_number, what);
}

absl::Status FailureStatus(const Plan& plan, const Failure& failure) {
  const ChildSpec& spec = *plan.spec;
  const std::string what = StrCat("start ", spec.argv[0], ": ");
  switch (failure.step) {
    case Step::kExec:
      return ExecStatus(spec, plan.program, failure.error_number);
    case Step::kCgroup:
      return ErrnoStatus(failure.error_number, StrCat(what, "join its cgroup"));
    case Step::kCpus:
      return ErrnoStatus(failure.error_number,
                         StrCat(what, "bind it to cores ", absl::StrJoin(spec.cpus, ","),
                                ", which are not all open to this process"));
    case Step::kWorkingDirectory:
      return ErrnoStatus(failure.error_number,
                         StrCat(what, "enter its working directory ", spec.working_directory));
    case Step::kDescriptors:
      return ErrnoStatus(failure.error_number, StrCat(what, "hand on its descriptors"));
    case Step::kSession:
      return ErrnoStatus(failure.error_number, StrCat(what, "make its session"));
    case Step::kDeathSignal:
      return ErrnoStatus(failure.error_number, StrCat(what, "tie it to its starter with signal ",
                                                      spec.parent_death_signal));
    case Step::kNone:
      break;
  }
  return absl::InternalError(StrCat(what, "it ended before it ran"));
}

// Forks with all signals blocked, so that no handler of the starter runs in the child.
pid_t ForkChild(Plan* plan) {
  sigset_t all, old, empty;
  sigfillset(&all);
  sigemptyset(&empty);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t pid = fork();
  if (pid == 0) RunChild(plan, empty);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  errno = error;
  return pid;
}

void WaitFor(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Waits until exec has closed the pipe's other end, or the child has said what failed.
Failure ReadFailure(int fd) {
  Failure failure;
  ssize_t size;
  do {
    size = read(fd, &failure, sizeof failure);
  } while (size < 0 && errno == EINTR);
  return size == sizeof failure ? failure : Failure{};
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const ChildSpec& spec) {
  Plan plan;
  MUSTER_RETURN_IF_ERROR(MakePlan(spec, &plan));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("start ", spec.argv[0], ": make a pipe"));
  }
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  plan.failure_fd = writing.get();
  Spawned spawned{.pid = ForkChild(&plan), .pidfd = {}};
  if (spawned.pid < 0) {
    const int error = errno;
    return error == EAGAIN ? absl::ResourceExhaustedError(StrCat(
                                 "start ", spec.argv[0],
                                 ": no more processes may be started: "
                                 "raise the limit (ulimit -u, pids.max) or start fewer tasks"))
                           : ErrnoStatus(error, StrCat("start ", spec.argv[0], ": fork"));
  }
  writing.Reset();
  if (const Failure failure = ReadFailure(reading.get()); failure.step != Step::kNone) {
    WaitFor(spawned.pid);
    return FailureStatus(plan, failure);
  }
  spawned.pidfd.Reset(OpenPidfd(spawned.pid));
  if (!spawned.pidfd.valid()) {
    const int error = errno;
    kill(spawned.pid, SIGKILL);
    WaitFor(spawned.pid);
    return ErrnoStatus(error, StrCat("start ", spec.argv[0], ": get a descriptor of its process"));
  }
  return spawned;
}

}  // namespace muster::process
