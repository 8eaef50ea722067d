// The tasks of a job as rows below the other output of a terminal, written again in place: one
// block that says of each task how far it is.
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
  // `fd`: a terminal that CanRewrite(). Nothing is written before the first Draw(). `clock` must
  // outlive the board.
  TaskBoard(int fd, const Clock& clock) : fd_(fd), clock_(clock) {}
  ~TaskBoard() { Clear(); }
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;

  // `job`: the result of control::DescribeJob().
  void SetJob(const formats::Json& job);
  // True if the line is the progress of a task that Muster trains: its row shows it from now on,
  // and it need not be printed. Other lines are left to the caller.
  bool ConsumeProgress(const std::string& task, std::string_view line);

  // Writes the block where the cursor is, or over its last state. No row is wider than the
  // terminal, and there are no more rows than it has lines. At most ten times a second, unless the
  // block is not there.
  void Draw();
  // Removes the block; the cursor stands where its first row was.
  void Clear();

  // What Draw() writes, without control characters: for `width` columns and `height` lines.
  std::vector<std::string> MakeRows(size_t width, size_t height) const;

 private:
  struct Row {
    std::string phase;
    int64_t step = -1;
    int64_t rated_step = -1, rated_at = 0;  // where the rate was last taken, and when
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
  size_t drawn_ = 0;  // rows on the terminal
  int64_t next_ = 0;
};

}  // namespace muster::cli
