#include "muster/control/local_log_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "muster/base/strings.h"
#include "muster/process/log_file.h"

namespace muster::control {
namespace {

constexpr double kMaxWaitSeconds = 1;

int MostRotated() { return process::LogFileOptions().kept_files; }

// Returns the path of "worker-0.log" and, for 1, 2 and so on, of the files that were rotated; older
// files have higher numbers.
std::string RotatedName(const std::string& path, int age) {
  return age == 0 ? path : StrCat(path, ".", age);
}

// Returns how often the open file was rotated; nothing if it has no name any more.
std::optional<int> GetAge(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  if (fstat(fd, &open_file) != 0) return std::nullopt;
  for (int age = 0; age <= MostRotated(); ++age) {
    const bool is_there = stat(RotatedName(path, age).c_str(), &named) == 0;
    if (is_there && named.st_ino == open_file.st_ino) return age;
  }
  return std::nullopt;
}

int64_t GetSize(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? int64_t{info.st_size} : 0;
}

}  // namespace

FolderNotice::FolderNotice(const std::string& folder)
    : notify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  inotify_add_watch(notify_.get(), folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
}

void FolderNotice::Clear() const {
  char events[4096];
  while (read(notify_.get(), events, sizeof events) > 0) {
  }
}

void FolderNotice::Wait(double seconds) const {
  pollfd change{.fd = notify_.get(), .events = POLLIN, .revents = 0};
  poll(&change, 1, static_cast<int>(std::clamp(seconds, 0.0, kMaxWaitSeconds) * 1000) + 1);
  Clear();
}

absl::StatusOr<LogPiece> LocalLogSource::Read(int64_t offset, size_t max, double wait) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    auto piece = ReadNow(offset, max);
    const double left = wait - std::chrono::duration<double>(Clock::now() - begin).count();
    if (!piece.ok() || !piece->bytes.empty() || left <= 0) return piece;
    notice_->Wait(left);
  }
}

absl::StatusOr<LogPiece> LocalLogSource::ReadNow(int64_t offset, size_t max) {
  if (offset == last_offset_) {
    position_ = last_position_;
    next_ = last_offset_;
    gap_ = gap_ || last_gap_;
  } else if (offset != next_) {
    return absl::OutOfRangeError(StrCat("read the log ", path_, " at offset ", offset,
                                        ": it is read forwards, from offset ", last_offset_, " or ",
                                        next_, " on"));
  }
  LogPiece piece{.bytes = {}, .next = offset};
  if (!file_.valid() && !OpenOldest()) return piece;
  while (true) {
    // This is checked before the file is read: a file that already had another name then is
    // complete.
    const auto age = GetAge(file_.get(), path_);
    if (GetSize(file_.get()) < position_) {  // truncated
      position_ = 0;
      gap_ = true;
    }
    piece.bytes.resize(max);
    const ssize_t size = pread(file_.get(), piece.bytes.data(), max, position_);
    if (size < 0) return ErrnoStatus(errno, StrCat("cannot read the log ", path_));
    piece.bytes.resize(static_cast<size_t>(size));
    if (size > 0 || age == 0 || !OpenNext()) break;
  }
  last_position_ = position_;
  last_offset_ = offset;
  last_gap_ = gap_;
  if (piece.bytes.empty()) return piece;
  piece.gap = std::exchange(gap_, false);
  position_ += static_cast<int64_t>(piece.bytes.size());
  next_ = piece.next = offset + static_cast<int64_t>(piece.bytes.size());
  return piece;
}

// Opens the oldest file that is kept. Returns false if there is none yet.
bool LocalLogSource::OpenOldest() {
  for (int age = MostRotated(); age >= 0 && !file_.valid(); --age) {
    file_.Reset(open(RotatedName(path_, age).c_str(), O_RDONLY | O_CLOEXEC));
  }
  position_ = 0;
  return file_.valid();
}

// Opens the file that was written after this one. Returns false if there is none, because this one
// is still written.
bool LocalLogSource::OpenNext() {
  while (true) {
    const auto age = GetAge(file_.get(), path_);
    if (age == 0) return false;
    process::Descriptor next;
    if (age) {
      next.Reset(open(RotatedName(path_, *age - 1).c_str(), O_RDONLY | O_CLOEXEC));
      if (!next.valid()) return false;                  // in the midst of a rotation
      if (GetAge(file_.get(), path_) != age) continue;  // the names have moved meanwhile
    }
    file_ = std::move(next);
    position_ = 0;
    gap_ = gap_ || !age.has_value();
    return age.has_value() || OpenOldest();
  }
}

}  // namespace muster::control
