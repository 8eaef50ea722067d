#include "muster/cli/log_follower.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/process/log_file.h"

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

int MostRotated() { return process::LogFileOptions().kept_files; }

// "worker-0.log", and for 1, 2, ... what was rotated away, the older the higher.
std::string RotatedName(const std::string& path, int age) {
  return age == 0 ? path : StrCat(path, ".", age);
}

// How often the open file was rotated; none: it is not there any more.
std::optional<int> AgeOf(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  if (fstat(fd, &open_file) != 0) return std::nullopt;
  for (int age = 0; age <= MostRotated(); ++age) {
    const bool is_there = stat(RotatedName(path, age).c_str(), &named) == 0;
    if (is_there && named.st_ino == open_file.st_ino) return age;
  }
  return std::nullopt;
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

// The oldest that is kept. False: there is none yet.
bool LogFollower::OpenOldest(job::TaskId task, Log& log) const {
  const std::string path = folder_.task_log(task);
  for (int age = MostRotated(); age >= 0 && !log.file.valid(); --age) {
    log.file.Reset(open(RotatedName(path, age).c_str(), O_RDONLY | O_CLOEXEC));
  }
  log.offset = 0;
  return log.file.valid();
}

// The one that was written after it. False: there is none, it is still written.
bool LogFollower::OpenNext(job::TaskId task, Log& log) const {
  const std::string path = folder_.task_log(task);
  while (true) {
    const auto age = AgeOf(log.file.get(), path);
    if (age == 0) return false;
    process::Descriptor next;
    if (age) {
      next.Reset(open(RotatedName(path, *age - 1).c_str(), O_RDONLY | O_CLOEXEC));
      if (!next.valid()) return false;                   // in the midst of a rotation
      if (AgeOf(log.file.get(), path) != age) continue;  // the names have moved meanwhile
    }
    log.file = std::move(next);
    log.offset = 0;
    return age.has_value() || OpenOldest(task, log);
  }
}

void LogFollower::PrintLog(job::TaskId task, Log& log, bool last) {
  if (!log.file.valid() && !OpenOldest(task, log)) return;
  do {
    const auto age = AgeOf(log.file.get(), folder_.task_log(task));
    ReadOn(log);  // all, where it had been renamed before
    if (age == 0) break;
  } while (OpenNext(task, log));
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

void LogFollower::Print(bool last) {
  for (auto& [task, log] : logs_) {
    if (!broken_) PrintLog(task, log, last);
    broken_ = broken_ || std::ferror(out_) != 0;
  }
  broken_ = broken_ || std::fflush(out_) != 0;
}

}  // namespace muster::cli
