#include "muster/cli/jobs/log_follower.h"

#include <poll.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kMaxLine = 1 << 20;  // a longer line is printed in parts
constexpr int kColors[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};
constexpr std::string_view kMissing = "[muster: output is missing here]";

std::string PrefixFor(job::TaskId task, size_t width, size_t place, bool color) {
  std::string name = job::TaskName(task);
  name.resize(std::max(width, name.size()), ' ');
  const std::string text = name + " | ";
  return color ? StrCat("\033[", kColors[place % std::size(kColors)], "m", text, "\033[0m") : text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogFollower>> LogFollower::Open(control::JobPlace& place,
                                                               const Options& options,
                                                               std::FILE* out) {
  std::unique_ptr<LogFollower> follower(new LogFollower(out, options));
  size_t width = 0;
  for (const job::TaskId task : options.tasks) width = std::max(width, job::TaskName(task).size());
  for (const job::TaskId task : options.tasks) {
    const size_t number = follower->logs_.size();
    Log& log = follower->logs_[task];
    log.task = job::TaskName(task);
    if (options.prefix) log.prefix = PrefixFor(task, width, number, options.color);
    MUSTER_ASSIGN_OR_RETURN(log.source, place.OpenLog(task));
  }
  return follower;
}

// All sources of one place share it.
int LogFollower::change_fd() const {
  return logs_.empty() ? -1 : logs_.begin()->second.source->change_fd();
}

void LogFollower::ClearChange() const {
  if (!logs_.empty()) logs_.begin()->second.source->ClearChange();
}

absl::Status LogFollower::status() const {
  for (const auto& [task, log] : logs_) {
    if (!log.status.ok()) return log.status;
  }
  return absl::OkStatus();
}

void LogFollower::PrintLine(const Log& log, std::string_view line) {
  if (wants_ && !wants_(log.task, line)) return;
  std::fwrite(log.prefix.data(), 1, log.prefix.size(), out_);
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fputc('\n', out_);
}

void LogFollower::PrintLines(Log& log, bool last) {
  const std::string_view text = log.open_line;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      if (!last && text.size() - at < kMaxLine) break;
      end = text.size();
    }
    PrintLine(log, text.substr(at, end - at));
    at = end + 1;
  }
  log.open_line.erase(0, std::min(at, log.open_line.size()));
}

// Reads all that there is; returns false if there is nothing.
bool LogFollower::ReadOn(Log& log, double wait) {
  bool any = false;
  while (true) {
    auto piece = log.source->Read(log.offset, kReadBytes, any ? 0 : wait);
    log.status = piece.status();
    if (!piece.ok() || piece->bytes.empty()) return any;
    any = true;
    if (piece->gap || piece->begins_run) PrintLines(log, /*last=*/true);
    if (piece->gap) PrintLine(log, kMissing);
    if (piece->begins_run) PrintLine(log, StrCat("[muster: a new run of ", log.task, " begins]"));
    log.offset = piece->next;
    log.open_line += piece->bytes;
    PrintLines(log, /*last=*/false);
  }
}

bool LogFollower::PrintNew() {
  bool any = false;
  for (auto& [task, log] : logs_) {
    if (!broken_) any = ReadOn(log, 0) || any;
    broken_ = broken_ || std::ferror(out_) != 0;
  }
  broken_ = broken_ || std::fflush(out_) != 0;
  return any;
}

void LogFollower::Print(bool last) {
  PrintNew();
  if (!last || broken_) return;
  for (auto& [task, log] : logs_) PrintLines(log, last);
  broken_ = std::fflush(out_) != 0 || std::ferror(out_) != 0;
}

bool LogFollower::PrintOrWait(double seconds) {
  if (PrintNew() || broken_ || logs_.empty()) return !broken_;
  if (const int fd = change_fd(); fd >= 0) {
    pollfd change{.fd = fd, .events = POLLIN, .revents = 0};
    const bool changed = poll(&change, 1, static_cast<int>(seconds * 1000)) != 0;
    ClearChange();
    return changed;
  }
  bool any = false;
  for (auto& [task, log] : logs_) {
    any = ReadOn(log, any ? 0 : seconds / static_cast<double>(logs_.size())) || any;
  }
  broken_ = broken_ || std::fflush(out_) != 0;
  return any;
}

}  // namespace muster::cli
