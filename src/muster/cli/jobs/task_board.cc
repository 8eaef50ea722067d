#include "muster/cli/jobs/task_board.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"

#include "muster/base/number_text.h"
#include "muster/base/strings.h"
#include "muster/base/terminal.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr int64_t kDrawNanos = 100'000'000;
constexpr int64_t kRateNanos = 2'000'000'000;  // the least time over which a rate is measured
// Muster's tasks report their progress every five seconds; an older report says nothing about now.
constexpr int64_t kFreshNanos = 15'000'000'000;
constexpr std::string_view kProgressOf[] = {"train", "evaluate", "predict"};
constexpr std::string_view kAfterVerb = "  step ";

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written <= 0) return;  // a closed terminal does not stop the job
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void TaskBoard::SetJob(const Json& job) {
  JsonFields fields(job, "job");
  const double start = fields.Number("start_time", 0);
  title_ = StrCat(fields.Text("name"), "  ", fields.Text("phase"));
  if (start > 0 && fields.Text("phase") != "suspended") {
    title_ += StrCat("  ", FormatDuration(std::max(0.0, clock_.WallSeconds() - start)));
  }
  const int64_t now = clock_.MonotonicNanos();
  order_.clear();
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    const std::string name = about.Text("task");
    order_.push_back(name);
    Row& row = rows_[name];
    row.phase = about.Text("phase");
    row.step = about.Int("step", -1, -1, INT64_MAX);
    if (row.step < row.rated_step || row.rated_step < 0) {  // the task has begun, or begun again
      row.rated_step = row.step;
      row.rated_at = now;
      row.steps_a_second = 0;
    } else if (now - row.rated_at >= kRateNanos) {
      row.steps_a_second = static_cast<double>(row.step - row.rated_step) * 1e9 /
                           static_cast<double>(now - row.rated_at);
      row.rated_step = row.step;
      row.rated_at = now;
    }
  }
}

bool TaskBoard::ConsumeProgress(const std::string& task, std::string_view line) {
  const bool is_progress = std::ranges::any_of(kProgressOf, [&](std::string_view verb) {
    return line.starts_with(verb) && line.substr(verb.size()).starts_with(kAfterVerb);
  });
  if (!is_progress) return false;
  Row& row = rows_[task];
  constexpr std::string_view kTrain = "train  ";
  row.progress = line.starts_with(kTrain) ? line.substr(kTrain.size()) : line;
  row.progress_at = clock_.MonotonicNanos();
  return true;
}

std::string TaskBoard::Describe(const Row& row) const {
  const bool is_fresh =
      !row.progress.empty() && clock_.MonotonicNanos() - row.progress_at < kFreshNanos;
  if (is_fresh && row.phase == "running") return StrCat(row.phase, "  ", row.progress);
  std::string text = row.phase;
  if (row.step >= 0) text += StrCat("  step ", row.step);
  if (row.steps_a_second > 0 && row.phase == "running") {
    text += absl::StrFormat("  %.1f steps/s", row.steps_a_second);
  }
  return text;
}

std::vector<std::string> TaskBoard::MakeRows(size_t width, size_t height) const {
  size_t name_width = 0;
  for (const std::string& task : order_) name_width = std::max(name_width, task.size());
  // The last column stays free: some terminals begin a new line after it.
  std::vector<std::string> rows = {FitColumns(title_, width - 1)};
  const size_t room = std::max<size_t>(height, 4) - 3;  // for the title, the rest and the cursor
  const size_t shown = order_.size() <= room + 1 ? order_.size() : room;
  for (size_t i = 0; i < shown; ++i) {
    std::string name = order_[i];
    name.resize(name_width, ' ');
    rows.push_back(FitColumns(StrCat("  ", name, "  ", Describe(rows_.at(order_[i]))), width - 1));
  }
  if (shown < order_.size()) rows.push_back(StrCat("  and ", order_.size() - shown, " more"));
  return rows;
}

void TaskBoard::Draw() {
  const int64_t now = clock_.MonotonicNanos();
  if (order_.empty() || (drawn_ > 0 && now < next_)) return;
  next_ = now + kDrawNanos;
  std::string text = drawn_ > 0 ? StrCat("\x1b[", drawn_, "A\r") : "";
  const std::vector<std::string> rows = MakeRows(TerminalWidth(fd_), TerminalHeight(fd_));
  for (const std::string& row : rows) text += StrCat(row, "\x1b[K\n");
  text += "\x1b[J";
  drawn_ = rows.size();
  WriteAll(fd_, text);
}

void TaskBoard::Clear() {
  if (drawn_ > 0) WriteAll(fd_, StrCat("\x1b[", drawn_, "A\r\x1b[J"));
  drawn_ = 0;
}

}  // namespace muster::cli
