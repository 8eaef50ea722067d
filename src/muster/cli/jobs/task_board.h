// TaskBoard: the tasks of a job as rows below the other output of a terminal, rewritten in place:
// one block that shows how far each task has come.
//
//   train-titanic-1a2b  running  1m 05s
//     chief-0   running  step 1200/5000  36k examples/s  loss 0.4123  1m 40s left
//     worker-0  running  step 1200  18.5 steps/s
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/clock.h"
#include "muster/formats/json_fields.h"

namespace muster::cli {

// One owner thread. Other code that writes to the same terminal calls Clear() first and Draw()
// afterwards.
class TaskBoard {
 public:
  // `fd` is a terminal for which CanRewrite() holds. Nothing is written before the first Draw().
  // `clock` must outlive the board.
  TaskBoard(int fd, const Clock& clock) : fd_(fd), clock_(clock) {}
  ~TaskBoard() { Clear(); }
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;

  // `job` is the result of control::DescribeJob().
  void SetJob(const formats::Json& job);
  // Returns true if the line is the progress of a task that Muster trains: from now on the task's
  // row shows it, and it need not be printed. Other lines are left to the caller.
  bool ConsumeProgress(const std::string& task, std::string_view line);

  // Writes the block at the cursor, or over its last state. No row is wider than the terminal, and
  // there are no more rows than it has lines. Writes at most ten times a second, unless the block
  // is not on the terminal.
  void Draw();
  // Removes the block; the cursor is then where its first row was.
  void Clear();

  // Returns what Draw() writes, without control characters, for `width` columns and `height` lines.
  std::vector<std::string> MakeRows(size_t width, size_t height) const;

 private:
  struct Row {
    std::string phase;
    int64_t step = -1;
    // the step at which the rate was last measured, and when
    int64_t rated_step = -1, rated_at = 0;
    double steps_a_second = 0;
    std::string progress = {};  // as the task printed it
    int64_t progress_at = 0;
  };
  std::string Describe(const Row& row) const;

  const int fd_;
  const Clock& clock_;
  std::string title_;
  std::map<std::string, Row> rows_;
  std::vector<std::string> order_;
  size_t drawn_ = 0;  // number of rows on the terminal
  int64_t next_ = 0;
};

}  // namespace muster::cli
