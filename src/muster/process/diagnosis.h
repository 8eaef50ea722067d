// What a task that says nothing is doing: its CPU use, where its threads wait, and the Python stack
// where py-spy is installed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/process/process_tree.h"

namespace muster::process {

// CPU time of each thread at a moment.
struct CpuSample {
  int64_t nanos = 0;                                       // Clock's MonotonicNanos
  std::map<std::pair<pid_t, pid_t>, double> seconds = {};  // of (process, thread)
};

// Threads of one process that do the same.
struct ThreadGroup {
  int count = 0;
  std::string names;         // of the first few
  char state = '?';          // R, S, D and the rest, as ProcessStat
  std::string wait_channel;  // the kernel's function it waits in; empty: none, or not to be read
  std::string kernel_stack;  // one call a line; empty where only root may read it
  double cores = 0;          // CPU time since the sample, by time passed, all together
};

struct ProcessDiagnosis {
  pid_t pid = 0;
  std::string command;
  double cores = 0;
  std::vector<ThreadGroup> threads;  // busiest first, then the most numerous
  std::string python_stack;          // what py-spy said, also its error; empty without it
};

struct Diagnosis {
  double interval_seconds = 0;
  double cores = 0;  // of all processes
  std::vector<ProcessDiagnosis> processes;
};

struct DiagnosisOptions {
  std::string py_spy = "py-spy";      // looked for in PATH; empty: not wanted
  double py_spy_timeout_seconds = 5;  // for each process
  int max_processes = 8;              // more are left out
};

// Now, of what runs in the tree. The caller lets some seconds pass before Diagnose.
CpuSample SampleCpu(const ProcessTree& tree, const Clock& clock);

// Of what runs in the tree now, with CPU use since `before`. Blocks for as long as py-spy may take.
Diagnosis Diagnose(ProcessTree* tree, const CpuSample& before, const Clock& clock,
                   const DiagnosisOptions& options);

// For people: some lines a process.
std::string PrintDiagnosis(const Diagnosis& diagnosis);

}  // namespace muster::process
