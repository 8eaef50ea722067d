#include "muster/process/diagnosis.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "muster/process/capture.h"

namespace muster::process {
namespace {

constexpr int kNamesShown = 3;
constexpr int kGroupsPrinted = 6;
constexpr size_t kMaxStackBytes = size_t{256} << 10;
constexpr double kBusyCores = 0.5;

std::string Trimmed(const std::optional<std::string>& text) {
  return text ? std::string(ToStd(absl::StripAsciiWhitespace(*text))) : "";
}

// Returns "futex_wait" of "[<0>] futex_wait+0x1a/0x90".
std::string CallNames(const std::string& stack) {
  std::vector<std::string> calls;
  for (absl::string_view line : absl::StrSplit(stack, '\n', absl::SkipEmpty())) {
    const size_t space = line.rfind(' ');
    const absl::string_view call = space == absl::string_view::npos ? line : line.substr(space + 1);
    calls.emplace_back(ToStd(call.substr(0, call.find('+'))));
  }
  std::string text;
  for (const std::string& call : calls) text += StrCat(text.empty() ? "" : "\n", call);
  return text;
}

double CpuSince(const CpuSample& before, pid_t pid, const ProcessStat& thread) {
  const auto it = before.seconds.find({pid, thread.pid});
  return thread.cpu_seconds - (it == before.seconds.end() ? 0 : it->second);
}

std::vector<ThreadGroup> GroupThreads(pid_t pid, const CpuSample& before, double interval) {
  std::map<std::tuple<char, std::string, std::string>, ThreadGroup> groups;
  for (const ProcessStat& thread : ReadThreads(pid)) {
    const std::string folder = StrCat("/proc/", pid, "/task/", thread.pid);
    const std::string channel = Trimmed(ReadSmallFile(folder + "/wchan"));
    const std::string stack = CallNames(Trimmed(ReadSmallFile(folder + "/stack")));
    ThreadGroup& group = groups[{thread.state, channel, stack}];
    group.state = thread.state;
    group.wait_channel = channel == "0" ? "" : channel;
    group.kernel_stack = stack;
    if (group.count < kNamesShown) group.names += StrCat(group.count == 0 ? "" : ", ", thread.name);
    if (group.count == kNamesShown) group.names += ", ...";
    ++group.count;
    if (interval > 0) group.cores += CpuSince(before, pid, thread) / interval;
  }
  std::vector<ThreadGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const ThreadGroup& a, const ThreadGroup& b) {
    return std::pair(a.cores, a.count) > std::pair(b.cores, b.count);
  });
  return sorted;
}

bool IsPython(pid_t pid) {
  char link[4096];
  const ssize_t size = readlink(StrCat("/proc/", pid, "/exe").c_str(), link, sizeof link);
  if (size <= 0) return false;
  const std::string_view path(link, static_cast<size_t>(size));
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

std::string PythonStack(ProcessTree* tree, pid_t pid, const DiagnosisOptions& options) {
  ChildSpec spec = {.argv = {options.py_spy, "dump", "--nonblocking", "--pid", StrCat(pid)},
                    .environment = CurrentEnvironment()};
  const auto run =
      RunCaptured(tree, std::move(spec), options.py_spy_timeout_seconds, kMaxStackBytes);
  if (absl::IsNotFound(run.status())) return "";
  if (!run.ok()) return std::string(ToStd(run.status().message()));
  if (run->timed_out) {
    return StrCat(run->output, "(", options.py_spy, " was stopped after ",
                  options.py_spy_timeout_seconds, " s)");
  }
  return Trimmed(run->output);
}

std::string_view StateWord(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "waiting";
    case 'D':
      return "waiting for a disk, device or network file system";
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'I':
      return "idle";
    default:
      return "in an unknown state";
  }
}

std::string PrintGroup(const ThreadGroup& group) {
  std::string text = absl::StrFormat("  %d %s (%s) %s, %.2f cores", group.count,
                                     group.count == 1 ? "thread" : "threads", group.names,
                                     ToAbsl(StateWord(group.state)), group.cores);
  if (!group.wait_channel.empty()) text += StrCat(", in ", group.wait_channel);
  text += "\n";
  for (absl::string_view call : absl::StrSplit(group.kernel_stack, '\n', absl::SkipEmpty())) {
    text += StrCat("      ", ToStd(call), "\n");
  }
  return text;
}

std::string PrintProcess(const ProcessDiagnosis& process) {
  std::string text =
      absl::StrFormat("process %d (%s): %.2f cores\n", process.pid, process.command, process.cores);
  const size_t shown = std::min<size_t>(process.threads.size(), kGroupsPrinted);
  for (size_t i = 0; i < shown; ++i) text += PrintGroup(process.threads[i]);
  if (shown < process.threads.size()) {
    text += StrCat("  and ", process.threads.size() - shown, " more kinds of threads\n");
  }
  for (absl::string_view line : absl::StrSplit(process.python_stack, '\n', absl::SkipEmpty())) {
    text += StrCat("  | ", ToStd(line), "\n");
  }
  return text;
}

}  // namespace

CpuSample SampleCpu(const ProcessTree& tree, const Clock& clock) {
  CpuSample sample;
  sample.nanos = clock.MonotonicNanos();
  for (const ProcessStat& process : tree.Running()) {
    for (const ProcessStat& thread : ReadThreads(process.pid)) {
      sample.seconds[{process.pid, thread.pid}] = thread.cpu_seconds;
    }
  }
  return sample;
}

Diagnosis Diagnose(ProcessTree* tree, const CpuSample& before, const Clock& clock,
                   const DiagnosisOptions& options) {
  Diagnosis diagnosis;
  diagnosis.interval_seconds = static_cast<double>(clock.MonotonicNanos() - before.nanos) * 1e-9;
  for (const ProcessStat& process : tree->Running()) {
    ProcessDiagnosis found;
    found.pid = process.pid;
    found.command = CommandLine(process.pid);
    found.threads = GroupThreads(process.pid, before, diagnosis.interval_seconds);
    for (const ThreadGroup& group : found.threads) found.cores += group.cores;
    diagnosis.cores += found.cores;
    if (diagnosis.processes.size() < static_cast<size_t>(std::max(options.max_processes, 0))) {
      diagnosis.processes.push_back(std::move(found));
    }
  }
  // py-spy comes after all figures were read: it runs in this process tree, and stops the process
  // that it looks at.
  for (ProcessDiagnosis& process : diagnosis.processes) {
    if (!options.py_spy.empty() && IsPython(process.pid)) {
      process.python_stack = PythonStack(tree, process.pid, options);
    }
  }
  return diagnosis;
}

std::string PrintDiagnosis(const Diagnosis& diagnosis) {
  if (diagnosis.processes.empty()) return "no process runs\n";
  std::string text =
      absl::StrFormat("%.2f cores over %.1f s: %s\n", diagnosis.cores, diagnosis.interval_seconds,
                      diagnosis.cores >= kBusyCores ? "it computes" : "it waits");
  for (const ProcessDiagnosis& process : diagnosis.processes) text += PrintProcess(process);
  return text;
}

}  // namespace muster::process
