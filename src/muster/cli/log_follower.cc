#include "muster/cli/log_follower.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster::cli {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kMaxLine = 1 << 20;  // a longer one is printed in parts
constexpr int kColors[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};

std::string PrefixFor(job::TaskId task, size_t width, size_t place, bool color) {
  std::string name = job::TaskName(task);
  name.resize(std::max(width, name.size()), ' ');
  const std::string text = name + " | ";
  return color ? StrCat("\033[", kColors[place % std::size(kColors)], "m", text, "\033[0m") : text;
}

}  // namespace

LogFollower::LogFollower(control::JobFolder folder, const Options& options, std::FILE* out)
    : folder_(std::move(folder)), out_(out), notify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  inotify_add_watch(notify_.get(), (folder_.path + "/logs").c_str(),
                    IN_CREATE | IN_MODIFY | IN_MOVED_TO);
  size_t width = 0;
  for (const job::TaskId task : options.tasks) width = std::max(width, job::TaskName(task).size());
  for (const job::TaskId task : options.tasks) {
    const size_t place = logs_.size();
    if (options.prefix) logs_[task].prefix = PrefixFor(task, width, place, options.color);
    logs_[task];
  }
}

void LogFollower::ClearChange() const {
  char events[4096];
  while (read(notify_.get(), events, sizeof events) > 0) {
  }
}

void LogFollower::PrintLines(Log& log, bool last) {
  size_t at = 0;
  while (at < log.open_line.size()) {
    size_t end = log.open_line.find('\n', at);
    if (end == std::string::npos) {
      if (!last && log.open_line.size() - at < kMaxLine) break;
      end = log.open_line.size();
    }
    std::fwrite(log.prefix.data(), 1, log.prefix.size(), out_);
    std::fwrite(log.open_line.data() + at, 1, end - at, out_);
    std::fputc('\n', out_);
    at = end + 1;
  }
  log.open_line.erase(0, std::min(at, log.open_line.size()));
}

void LogFollower::PrintLog(job::TaskId task, Log& log, bool last) {
  if (!log.file.valid()) {
    log.file.Reset(open(folder_.task_log(task).c_str(), O_RDONLY | O_CLOEXEC));
    if (!log.file.valid()) return;
  }
  ReadOn(log);
  if (WasRotated(task, log)) {
    ReadOn(log);  // what came before it was renamed
    log.file.Reset();
    log.offset = 0;
    return PrintLog(task, log, last);
  }
  if (last) PrintLines(log, last);
}

void LogFollower::ReadOn(Log& log) {
  std::string buffer(kReadBytes, '\0');
  while (true) {
    const ssize_t size = pread(log.file.get(), buffer.data(), buffer.size(), log.offset);
    if (size <= 0) return;
    log.offset += size;
    log.open_line.append(buffer, 0, static_cast<size_t>(size));
    PrintLines(log, /*last=*/false);
  }
}

// Another file has its name now.
bool LogFollower::WasRotated(job::TaskId task, const Log& log) const {
  struct stat open_file {
  }, named{};
  return fstat(log.file.get(), &open_file) == 0 &&
         stat(folder_.task_log(task).c_str(), &named) == 0 && open_file.st_ino != named.st_ino;
}

void LogFollower::Print(bool last) {
  for (auto& [task, log] : logs_) PrintLog(task, log, last);
  std::fflush(out_);
}

}  // namespace muster::cli
