#include "muster/process/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/process/pidfd.h"

namespace muster::process {
namespace {

constexpr int kMaxSnapshots = 5;
constexpr int kMaxExecLooks = 5000;  // a second at least
constexpr int kExecLookMicros = 200;

// The fields of stat after the name, counted from the state (field 3 of proc(5)).
enum StatField : size_t {
  kState = 0,
  kParent = 1,
  kGroup = 2,
  kSession = 3,
  kUserTicks = 11,
  kSystemTicks = 12,
  kChildrenUserTicks = 13,
  kChildrenSystemTicks = 14,
  kThreads = 17,
  kStartTicks = 19,
  kCodeEnd = 24,
  kEnvironmentStart = 47,
  kEnvironmentEnd = 48,
  kFieldsNeeded = 20,
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Returns the entries of a folder that are numbers.
std::vector<pid_t> NumberedEntries(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder.get())) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  return numbers;
}

// Returns true if every process's parent is in the snapshot, or is outside of it for good (0).
bool IsComplete(const std::map<pid_t, ProcessStat>& all) {
  return std::all_of(all.begin(), all.end(), [&](const auto& entry) {
    const pid_t parent = entry.second.parent;
    return parent == 0 || all.contains(parent);
  });
}

// Kernel threads and zombies run none.
bool RunsAProgram(pid_t pid) {
  char first;
  return readlink(StrCat("/proc/", pid, "/exe").c_str(), &first, 1) > 0;
}

// Returns how many bytes of environment the process was given; none while an exec has not laid them
// out yet, and of what runs no program. The kernel notes the end of the code after all the rest
// (load_elf_binary of Linux), until when an environment may be shown as having no bytes.
std::optional<uint64_t> EnvironmentSize(pid_t pid) {
  const auto text = ReadSmallFile(StrCat("/proc/", pid, "/stat"));
  if (!text) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text->substr(text->rfind(')') + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  uint64_t code = 0, start = 0, end = 0;
  if (fields.size() <= kEnvironmentEnd || !absl::SimpleAtoi(fields[kCodeEnd], &code) || code == 0 ||
      !absl::SimpleAtoi(fields[kEnvironmentStart], &start) ||
      !absl::SimpleAtoi(fields[kEnvironmentEnd], &end)) {
    return std::nullopt;
  }
  return end - start;
}

// Reads what the process was given; empty if it cannot be seen. During an exec, which lasts as long
// as the processor is taken away from it, the environment reads as empty, so this looks again.
std::string ReadEnvironment(pid_t pid) {
  const std::string path = StrCat("/proc/", pid, "/environ");
  for (int look = 0; look < kMaxExecLooks; ++look) {
    const auto environment = ReadSmallFile(path, size_t{4} << 20);
    if (!environment || !environment->empty()) return environment.value_or("");
    const auto size = EnvironmentSize(pid);
    if (size == uint64_t{0}) return "";
    if (size) continue;  // the exec has just laid it out
    if (!RunsAProgram(pid)) return "";
    usleep(kExecLookMicros);
  }
  return "";
}

std::vector<ProcessStat> Below(const std::vector<pid_t>& roots,
                               const std::map<pid_t, ProcessStat>& all) {
  std::multimap<pid_t, const ProcessStat*> children;
  for (const auto& [pid, stat] : all) children.emplace(stat.parent, &stat);
  std::vector<ProcessStat> found;
  const auto add = [&](pid_t parent) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto it = begin; it != end; ++it) found.push_back(*it->second);
    children.erase(begin, end);
  };
  for (pid_t root : roots) add(root);
  for (size_t i = 0; i < found.size(); ++i) add(found[i].pid);
  return found;
}

}  // namespace

std::optional<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < max_bytes) {
    const ssize_t got = read(file.get(), buffer, std::min(sizeof buffer, max_bytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::optional<ProcessStat> ParseStat(std::string_view text) {
  const size_t open = text.find('('), close = text.rfind(')');
  ProcessStat stat;
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(ToAbsl(text.substr(0, open)), &stat.pid)) return std::nullopt;
  stat.name = text.substr(open + 1, close - open - 1);
  const std::vector<absl::string_view> fields =
      absl::StrSplit(ToAbsl(text.substr(close + 1)), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (fields.size() < kFieldsNeeded || fields[kState].size() != 1) return std::nullopt;
  stat.state = fields[kState][0];
  int64_t ticks[4];
  for (int i = 0; i < 4; ++i) {
    if (!absl::SimpleAtoi(fields[kUserTicks + i], &ticks[i])) return std::nullopt;
  }
  if (!absl::SimpleAtoi(fields[kParent], &stat.parent) ||
      !absl::SimpleAtoi(fields[kGroup], &stat.group) ||
      !absl::SimpleAtoi(fields[kSession], &stat.session) ||
      !absl::SimpleAtoi(fields[kThreads], &stat.threads) ||
      !absl::SimpleAtoi(fields[kStartTicks], &stat.start_ticks)) {
    return std::nullopt;
  }
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  stat.cpu_seconds = static_cast<double>(ticks[0] + ticks[1]) / per_second;
  stat.children_cpu_seconds = static_cast<double>(ticks[2] + ticks[3]) / per_second;
  return stat;
}

std::optional<ProcessStat> ReadStat(pid_t pid) {
  const auto text = ReadSmallFile(StrCat("/proc/", pid, "/stat"));
  return text ? ParseStat(*text) : std::nullopt;
}

std::vector<ProcessStat> ReadThreads(pid_t pid) {
  std::vector<ProcessStat> threads;
  const std::string tasks = StrCat("/proc/", pid, "/task");
  for (pid_t thread : NumberedEntries(tasks)) {
    const auto text = ReadSmallFile(StrCat(tasks, "/", thread, "/stat"));
    if (!text) continue;
    if (auto stat = ParseStat(*text)) threads.push_back(*std::move(stat));
  }
  return threads;
}

std::map<pid_t, ProcessStat> ReadAllStats() {
  std::map<pid_t, ProcessStat> all;
  for (pid_t pid : NumberedEntries("/proc")) {
    if (auto stat = ReadStat(pid)) all.emplace(pid, *std::move(stat));
  }
  return all;
}

std::vector<ProcessStat> Descendants(const std::vector<pid_t>& roots) {
  std::map<pid_t, ProcessStat> all = ReadAllStats();
  for (int i = 1; i < kMaxSnapshots && !IsComplete(all); ++i) all = ReadAllStats();
  return Below(roots, all);
}

std::vector<pid_t> Children(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = StrCat("/proc/", pid, "/task");
  for (pid_t thread : NumberedEntries(tasks)) {
    const auto text = ReadSmallFile(StrCat(tasks, "/", thread, "/children"));
    if (!text) continue;
    for (absl::string_view word : absl::StrSplit(*text, ' ', absl::SkipEmpty())) {
      pid_t child = 0;
      if (absl::SimpleAtoi(word, &child)) children.push_back(child);
    }
  }
  return children;
}

std::vector<ProcessStat> QuickDescendants(pid_t root) {
  std::map<pid_t, ProcessStat> seen;
  std::vector<pid_t> queue = Children(root);
  for (size_t i = 0; i < queue.size(); ++i) {
    const pid_t pid = queue[i];
    auto stat = ReadStat(pid);
    if (!stat || !seen.emplace(pid, *std::move(stat)).second) continue;
    for (pid_t child : Children(pid)) queue.push_back(child);
  }
  return Below({root}, seen);
}

Descriptor OpenProcess(const ProcessStat& process) {
  Descriptor descriptor(OpenPidfd(process.pid));
  if (!descriptor.valid()) return descriptor;
  const auto now = ReadStat(process.pid);
  if (!now || now->start_ticks != process.start_ticks) descriptor.Reset();
  return descriptor;
}

std::string CommandLine(pid_t pid, size_t max_bytes) {
  auto text = ReadSmallFile(StrCat("/proc/", pid, "/cmdline"), max_bytes);
  if (text && !text->empty()) {
    while (!text->empty() && text->back() == '\0') text->pop_back();
    std::replace_if(
        text->begin(), text->end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    return *text;
  }
  const auto stat = ReadStat(pid);
  return stat ? StrCat("[", stat->name, "]") : "";
}

std::optional<int64_t> PssBytes(pid_t pid) {
  const auto text = ReadSmallFile(StrCat("/proc/", pid, "/smaps_rollup"));
  if (!text) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() >= 2 && words[0] == "Pss:" && absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes * 1024;
    }
  }
  return std::nullopt;
}

std::vector<ProcessStat> FindMarked(std::string_view entry) {
  std::vector<ProcessStat> found;
  const std::string wanted = StrCat(std::string_view("\0", 1), entry, std::string_view("\0", 1));
  for (pid_t pid : NumberedEntries("/proc")) {
    if (pid == getpid()) continue;
    const std::string environment = StrCat(std::string_view("\0", 1), ReadEnvironment(pid));
    if (environment.find(wanted) == std::string::npos) continue;
    if (auto stat = ReadStat(pid); stat && !stat->ended()) found.push_back(*std::move(stat));
  }
  return found;
}

}  // namespace muster::process
