#include "muster/process/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace muster::process {
namespace {

constexpr int64_t kSparedPart = 20;  // of the disk, at most

absl::StatusOr<Descriptor> OpenForAppending(const std::string& path, int64_t* size) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("open the log file ", path));
  }
  struct stat info;
  *size = fstat(file.get(), &info) == 0 ? int64_t{info.st_size} : 0;
  return file;
}

std::string Cause(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Open(const LogFileOptions& options) {
  int64_t size = 0;
  MUSTER_ASSIGN_OR_RETURN(Descriptor file, OpenForAppending(options.path, &size));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<LogFile>(new LogFile(options, std::move(file), size));
}

LogFile::LogFile(const LogFileOptions& options, Descriptor file, int64_t size)
    : options_(options), file_(std::move(file)), size_(size) {}

void LogFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (MustRotate()) Rotate();
    std::string_view rest = bytes;
    const std::string_view piece = ConsumePiece(&rest);
    size_t written = 0;
    if ((dropped_ > 0 && !WriteNotice()) || !Write(piece, &written)) {
      const auto lost = static_cast<int64_t>(bytes.size() - written);
      dropped_ += lost;
      dropped_total_ += lost;
      return;
    }
    bytes = rest;
  }
}

// Returns the bytes that may go into this file: all, or those up to the end of the line that
// crosses the limit.
std::string_view LogFile::ConsumePiece(std::string_view* bytes) const {
  size_t count = bytes->size();
  if (options_.max_bytes > 0 && size_ + static_cast<int64_t>(count) > options_.max_bytes) {
    const int64_t room = std::max<int64_t>(options_.max_bytes - size_, 0);
    const size_t newline = bytes->find('\n', static_cast<size_t>(room));
    const auto last = static_cast<size_t>(std::max<int64_t>(2 * options_.max_bytes - size_, 1));
    count = std::min({count, newline == std::string_view::npos ? count : newline + 1, last});
  }
  const std::string_view piece = bytes->substr(0, count);
  bytes->remove_prefix(count);
  return piece;
}

// A disk whose free space is not known counts as having enough.
bool LogFile::HasRoom(size_t bytes) const {
  struct statvfs disk;
  if (options_.spared_bytes <= 0 || fstatvfs(file_.get(), &disk) != 0 || disk.f_blocks == 0) {
    return true;
  }
  const auto block = static_cast<int64_t>(disk.f_frsize);
  const int64_t total = static_cast<int64_t>(disk.f_blocks) * block;
  const int64_t left = static_cast<int64_t>(disk.f_bavail) * block - static_cast<int64_t>(bytes);
  return left >= std::min(options_.spared_bytes, total / kSparedPart);
}

bool LogFile::Write(std::string_view bytes, size_t* written) {
  if (!HasRoom(bytes.size())) {
    error_number_ = ENOSPC;
    return false;
  }
  while (*written < bytes.size()) {
    const ssize_t got = write(file_.get(), bytes.data() + *written, bytes.size() - *written);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      error_number_ = got < 0 ? errno : ENOSPC;
      return false;
    }
    *written += static_cast<size_t>(got);
    size_ += got;
    at_line_start_ = bytes[*written - 1] == '\n';
  }
  return true;
}

bool LogFile::WriteNotice() {
  const std::string notice = StrCat(at_line_start_ ? "" : "\n", "[muster: ", dropped_,
                                    " bytes of output lost here: ", Cause(error_number_), "]\n");
  size_t written = 0;
  if (!Write(notice, &written)) return false;
  dropped_ = 0;
  return true;
}

bool LogFile::MustRotate() const {
  if (options_.max_bytes <= 0 || size_ < options_.max_bytes) return false;
  return at_line_start_ || size_ >= 2 * options_.max_bytes;
}

void LogFile::Rotate() {
  const auto name = [this](int n) {
    return n == 0 ? options_.path : StrCat(options_.path, ".", n);
  };
  if (options_.kept_files <= 0) {
    unlink(options_.path.c_str());
  } else {
    for (int n = options_.kept_files; n > 0; --n) rename(name(n - 1).c_str(), name(n).c_str());
  }
  // If no new file can be made, the old one is continued under its new name, for another such
  // length.
  int64_t size = 0;
  if (auto file = OpenForAppending(options_.path, &size); file.ok()) {
    file_ = *std::move(file);
    at_line_start_ = true;
  }
  size_ = 0;
}

absl::Status LogFile::Close() {
  if (dropped_ > 0) WriteNotice();
  const bool closed = close(file_.Release()) == 0;
  const int error = closed ? error_number_ : errno;
  if (dropped_total_ == 0 && closed) return absl::OkStatus();
  return ErrnoStatus(error, StrCat(dropped_total_, " bytes of output are missing in the log file ",
                                   options_.path));
}

}  // namespace muster::process
