// What a silent task is doing: its CPU use, where its threads wait, and the Python stack if py-spy
// is installed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/process/process_tree.h"

namespace muster::process {

// CPU time of each thread at one moment.
struct CpuSample {
  int64_t nanos = 0;                                       // Clock's MonotonicNanos
  std::map<std::pair<pid_t, pid_t>, double> seconds = {};  // of (process, thread)
};

// Threads of one process that do the same thing.
struct ThreadGroup {
  int count = 0;
  std::string names;         // of the first few
  char state = '?';          // R, S, D and the rest, as ProcessStat
  std::string wait_channel;  // the kernel function it waits in; empty: none, or unreadable
  std::string kernel_stack;  // one call per line; empty if only root may read it
  double cores = 0;          // CPU time since the sample per elapsed time, in total
};

struct ProcessDiagnosis {
  pid_t pid = 0;
  std::string command;
  double cores = 0;
  std::vector<ThreadGroup> threads;  // busiest first, then the most numerous
  std::string python_stack;          // py-spy's output or its error; empty without py-spy
};

struct Diagnosis {
  double interval_seconds = 0;
  double cores = 0;  // of all processes
  std::vector<ProcessDiagnosis> processes;
};

struct DiagnosisOptions {
  std::string py_spy = "py-spy";      // searched in PATH; empty: not used
  double py_spy_timeout_seconds = 5;  // for each process
  int max_processes = 8;              // more are left out
};

// Samples the processes in the tree now. The caller lets some seconds pass before Diagnose.
CpuSample SampleCpu(const ProcessTree& tree, const Clock& clock);

// Diagnoses the processes in the tree, with CPU use since `before`. Blocks as long as py-spy takes.
Diagnosis Diagnose(ProcessTree* tree, const CpuSample& before, const Clock& clock,
                   const DiagnosisOptions& options);

// For people: some lines per process.
std::string PrintDiagnosis(const Diagnosis& diagnosis);

}  // namespace muster::process
