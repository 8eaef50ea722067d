// The logs of a job's tasks as one stream: whole lines, each with its task's name in front.
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
    bool prefix = true;  // "worker-0 | "
    bool color = false;
    // Asked about each line before it is printed; false: it is not printed. Null: all are.
    std::function<bool(const std::string& task, std::string_view line)> wants = {};
  };
  // Opens the logs of the tasks. `place` must outlive the follower.
  static absl::StatusOr<std::unique_ptr<LogFollower>> Open(control::JobPlace& place,
                                                           const Options& options, std::FILE* out);

  // Prints new output, starting with the oldest that is kept. `last`: also prints an unfinished
  // line. Output that was lost on the way is a line "[muster: output is missing here]".
  void Print(bool last = false);
  // Prints new output; if there is none, waits up to `seconds` for some. False: there was none.
  bool PrintOrWait(double seconds);
  // True once its output cannot be written (a closed pipe or terminal, a full disk). It prints
  // nothing from then on.
  bool broken() const { return broken_; }
  // The first log that could not be read the last time that it was tried.
  absl::Status status() const;
  // Readable when there may be more output; -1 if the place offers no such notification.
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
