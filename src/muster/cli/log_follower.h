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

  // Prints new output, starting with rotated files. `last`: also prints an unfinished line.
  void Print(bool last = false);
  // True once its output cannot be written (a closed pipe or terminal, a full disk). It prints
  // nothing from then on.
  bool broken() const { return broken_; }
  // Readable when there may be more output; -1 if the system offers no such notification.
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
  bool OpenOldest(job::TaskId task, Log& log) const;
  bool OpenNext(job::TaskId task, Log& log) const;

  const control::JobFolder folder_;
  std::FILE* const out_;
  process::Descriptor notify_;
  std::map<job::TaskId, Log> logs_;
  bool broken_ = false;
};

}  // namespace muster::cli
