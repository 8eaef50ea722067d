// Processes as shown by /proc. Source: Documentation/filesystems/proc.rst of Linux.
//
// A pid identifies a process only for a short time: the process may end and its pid be reused
// between two calls. A ProcessStat also carries the start time, which tells the two processes
// apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/process/descriptor.h"

namespace muster::process {

struct ProcessStat {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  char state = '?';  // R, S, D, Z, T and the rest; see proc(5)
  std::string name;  // at most 15 bytes
  int threads = 0;
  uint64_t start_ticks = 0;         // since boot; with the pid it identifies a process
  double cpu_seconds = 0;           // of the process itself, all its threads
  double children_cpu_seconds = 0;  // of children that it waited for

  bool ended() const { return state == 'Z' || state == 'X'; }
};

// The text of /proc/PID/stat or /proc/PID/task/TID/stat; none if it is another text. A name may
// hold spaces and parentheses.
std::optional<ProcessStat> ParseStat(std::string_view text);
// None if there is no such process (any more).
std::optional<ProcessStat> ReadStat(pid_t pid);

// The threads of a process; `pid` of each is the thread's. Empty: the process is gone.
std::vector<ProcessStat> ReadThreads(pid_t pid);

// Every process of this pid namespace.
std::map<pid_t, ProcessStat> ReadAllStats();

// All processes below any of `roots`, each once, parents before children, zombies included; a root
// is included if it is below another root. Reads all of /proc, and reads it again if a parent
// vanishes in between, so that no process is missed that exists during the whole call.
std::vector<ProcessStat> Descendants(const std::vector<pid_t>& roots);

// The same by following each process's list of children: quick on a machine with many processes,
// but may miss one while others end. For statistics, not for decisions.
std::vector<ProcessStat> QuickDescendants(pid_t root);

// The children of a process, including adopted orphans. Quick, as above.
std::vector<pid_t> Children(pid_t pid);

// A descriptor of exactly that process; invalid if it has been reaped.
Descriptor OpenProcess(const ProcessStat& process);

// The command line with spaces between arguments, cut at max_bytes; the name in brackets if there
// is none; empty if the process is gone.
std::string CommandLine(pid_t pid, size_t max_bytes = 200);

// Proportional share of memory, from smaps_rollup; none: the process is gone or belongs to another
// user.
std::optional<int64_t> PssBytes(pid_t pid);

// This user's processes whose initial environment contains "NAME=VALUE": the processes a task left
// behind, however they were orphaned. Zombies and processes of other users cannot be seen; this
// process is never among them.
std::vector<ProcessStat> FindMarked(std::string_view entry);

// A whole small file, such as those of /proc; none if it cannot be read. At most max_bytes.
std::optional<std::string> ReadSmallFile(const std::string& path,
                                         size_t max_bytes = size_t{1} << 20);

}  // namespace muster::process
