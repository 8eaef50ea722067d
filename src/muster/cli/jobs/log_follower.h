// LogFollower: the logs of a job's tasks as one stream of whole lines, each preceded by its task's
// name.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/control/job_place.h"

namespace muster::cli {

// One owner thread.
class LogFollower {
 public:
  struct Options {
    std::vector<job::TaskId> tasks;
    bool prefix = true;  // print "worker-0 | " before each line
    bool color = false;
    // Called for each line before it is printed; false: the line is not printed. Null: all lines
    // are printed.
    std::function<bool(const std::string& task, std::string_view line)> wants = {};
  };
  // Opens the logs of the tasks. `place` must outlive the follower.
  static absl::StatusOr<std::unique_ptr<LogFollower>> Open(control::JobPlace& place,
                                                           const Options& options, std::FILE* out);

  // Prints new output, beginning with the oldest that is kept. `last`: also prints an unfinished
  // line. For output that was lost it prints "[muster: output is missing here]", and before that of
  // a task's next run "[muster: a new run of worker-0 begins]", where the place tells runs apart.
  void Print(bool last = false);
  // Prints new output; if there is none, waits up to `seconds` for some. Returns false if there was
  // none.
  bool PrintOrWait(double seconds);
  // True once its output cannot be written (a closed pipe or terminal, a full disk); from then on
  // it prints nothing.
  bool broken() const { return broken_; }
  // The error of the first log whose last read has failed.
  absl::Status status() const;
  // A descriptor that becomes readable when there may be more output; -1 if the place has none.
  int change_fd() const;
  void ClearChange() const;

 private:
  struct Log {
    std::unique_ptr<control::LogSource> source;
    int64_t offset = 0;
    std::string open_line;
    std::string task, prefix;
    absl::Status status;
  };
  LogFollower(std::FILE* out, const Options& options) : out_(out), wants_(options.wants) {}
  bool ReadOn(Log& log, double wait);
  void PrintLines(Log& log, bool last);
  void PrintLine(const Log& log, std::string_view line);
  bool PrintNew();

  std::FILE* const out_;
  const std::function<bool(const std::string&, std::string_view)> wants_;
  std::map<job::TaskId, Log> logs_;
  bool broken_ = false;
};

}  // namespace muster::cli
