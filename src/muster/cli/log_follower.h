// The logs of a job's tasks as one stream: whole lines, each with its task's name in front.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "muster/control/job_folder.h"
#include "muster/process/descriptor.h"

namespace muster::cli {

// One owner thread.
class LogFollower {
 public:
  struct Options {
    std::vector<job::TaskId> tasks;
    bool prefix = true;  // "worker-0 | "
    bool color = false;
  };
  LogFollower(control::JobFolder folder, const Options& options, std::FILE* out);

  // Prints what is new. `last`: also a line without its end.
  void Print(bool last = false);
  // Readable when there may be more; -1 where the system gives no such thing.
  int change_fd() const { return notify_.get(); }
  void ClearChange() const;

 private:
  struct Log {
    process::Descriptor file;
    long offset = 0;
    std::string open_line;
    std::string prefix;
  };
  void PrintLog(job::TaskId task, Log& log, bool last);
  void PrintLines(Log& log, bool last);
  void ReadOn(Log& log);
  bool WasRotated(job::TaskId task, const Log& log) const;

  const control::JobFolder folder_;
  std::FILE* const out_;
  process::Descriptor notify_;
  std::map<job::TaskId, Log> logs_;
};

}  // namespace muster::cli
