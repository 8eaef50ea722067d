#include "muster/process/output_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <stop_token>
#include <utility>

#include "muster/process/deadline.h"

namespace muster::process {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// So much is read after a request to stop: more than a pipe holds, and limited, so that a program
// that keeps writing cannot keep us.
constexpr size_t kMaxDrainBytes = size_t{4} << 20;
constexpr double kDrainSeconds = 2;  // for the reader of the copy, after the output's end

void Raise(const Descriptor& event) {
  const uint64_t one = 1;
  (void)!write(event.get(), &one, sizeof one);  // can only fail when raised 2^64 times
}

}  // namespace

void LineTail::Append(std::string_view bytes) {
  // Lines that later lines of the same bytes would push out again are not made.
  size_t begin = bytes.size();
  for (size_t lines = 0; begin > 0 && lines <= max_lines_; ++lines) {
    begin = bytes.rfind('\n', begin - 1);
    if (begin == std::string_view::npos) begin = 0;
  }
  if (begin > 0) {
    FinishLine();
    bytes.remove_prefix(begin + 1);
  }
  while (true) {
    const size_t newline = bytes.find('\n');
    AppendToLine(bytes.substr(0, newline));
    if (newline == std::string_view::npos) return;
    FinishLine();
    bytes.remove_prefix(newline + 1);
  }
}

void LineTail::AppendToLine(std::string_view piece) {
  while (!piece.empty()) {
    const size_t back = piece.find('\r');
    const std::string_view text = piece.substr(0, back);
    if (!text.empty() && returned_) {
      partial_.clear();
      returned_ = false;
    }
    partial_.append(text.substr(0, kMaxLineBytes - std::min(kMaxLineBytes, partial_.size())));
    if (back == std::string_view::npos) return;
    returned_ = true;
    piece.remove_prefix(back + 1);
  }
}

void LineTail::FinishLine() {
  lines_.push_back(std::exchange(partial_, ""));
  returned_ = false;
  while (lines_.size() > max_lines_) lines_.pop_front();
}

std::vector<std::string> LineTail::Lines() const {
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  if (!partial_.empty()) lines.push_back(partial_);
  if (lines.size() > max_lines_) lines.erase(lines.begin());
  return lines;
}

void OutputCopy::Append(std::string_view bytes) {
  if (fd_ < 0) return;
  Flush();
  if (kept_.size() < kMaxBytes && left_out_ > 0) {
    kept_ +=
        StrCat("\n[muster: ", left_out_, " bytes of output left out here: nobody read them]\n");
    left_out_ = 0;
  }
  const size_t taken = std::min(bytes.size(), kMaxBytes - std::min(kMaxBytes, kept_.size()));
  kept_.append(bytes.substr(0, taken));
  left_out_ += bytes.size() - taken;
  Flush();
}

// A pipe that is ready takes PIPE_BUF bytes without a wait. Its flags are not changed, since other
// processes use the same pipe.
void OutputCopy::Flush() {
  size_t written = 0;
  while (fd_ >= 0 && written < kept_.size()) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const size_t count = std::min<size_t>(kept_.size() - written, PIPE_BUF);
    const ssize_t put = write(fd_, kept_.data() + written, count);
    if (put > 0) {
      written += static_cast<size_t>(put);
    } else if (put < 0 && errno != EINTR && errno != EAGAIN) {
      fd_ = -1;  // nobody reads any more
    }
  }
  kept_.erase(0, fd_ < 0 ? std::string::npos : written);
}

void OutputCopy::Drain(double timeout_seconds) {
  const Deadline deadline = Deadline::After(timeout_seconds);
  Append("");  // what was left out last is said
  for (Flush(); waiting_fd() >= 0 && !deadline.expired(); Flush()) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    poll(&ready, 1, deadline.PollMillis());
  }
}

absl::StatusOr<std::unique_ptr<OutputLog>> OutputLog::Open(const OutputLogOptions& options,
                                                           const Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> file, LogFile::Open(options.file));
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<OutputLog> log(new OutputLog(std::move(file), options, clock));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("make a pipe for the log file ", options.file.path));
  }
  log->reader_.Reset(ends[0]);
  log->writer_.Reset(ends[1]);
  // Only the reading end is made non-blocking: the program must wait when the pipe is full.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  log->stop_event_.Reset(eventfd(0, EFD_CLOEXEC));
  log->done_event_.Reset(eventfd(0, EFD_CLOEXEC));
  if (!log->stop_event_.valid() || !log->done_event_.valid()) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("make events for the log file ", options.file.path));
  }
  log->thread_ = std::jthread([raw = log.get()](const std::stop_token& stop) { raw->Pump(stop); });
  return log;
}

OutputLog::OutputLog(std::unique_ptr<LogFile> file, const OutputLogOptions& options,
                     const Clock* clock)
    : clock_(clock),
      file_(std::move(file)),
      last_output_nanos_(clock->MonotonicNanos()),
      tail_(options.tail_lines),
      copy_(options.copy_fd) {}

OutputLog::~OutputLog() { Finish(0).IgnoreError(); }

void OutputLog::Pump(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { Raise(stop_event_); });
  const auto wait = [this] {
    pollfd polled[] = {{.fd = reader_.get(), .events = POLLIN, .revents = 0},
                       {.fd = stop_event_.get(), .events = POLLIN, .revents = 0},
                       {.fd = copy_.waiting_fd(), .events = POLLOUT, .revents = 0}};
    poll(polled, 3, -1);
    if (polled[2].revents != 0) copy_.Flush();
  };
  std::string buffer(kReadBytes, '\0');
  size_t drained = 0;
  while (drained < kMaxDrainBytes) {
    const ssize_t got = read(reader_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      Take({buffer.data(), static_cast<size_t>(got)});
      if (stop.stop_requested()) drained += static_cast<size_t>(got);
    } else if (got < 0 && errno == EAGAIN && !stop.stop_requested()) {
      wait();
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  copy_.Drain(kDrainSeconds);
  Raise(done_event_);
}

void OutputLog::Take(std::string_view bytes) {
  last_output_nanos_ = clock_->MonotonicNanos();
  bytes_ += static_cast<int64_t>(bytes.size());
  file_->Append(bytes);
  copy_.Append(bytes);
  dropped_ = file_->dropped_bytes();
  MutexLock lock(&mutex_);
  tail_.Append(bytes);
}

absl::Status OutputLog::Finish(double timeout_seconds) {
  if (finished_) return result_;
  finished_ = true;
  CloseWriter();
  if (thread_.joinable()) {
    const int done = done_event_.get();
    PollReadable(&done, 1, Deadline::After(timeout_seconds));
    thread_.request_stop();
    thread_.join();
  }
  reader_.Reset();
  result_ = file_->Close();
  return result_;
}

std::vector<std::string> OutputLog::Tail() const {
  MutexLock lock(&mutex_);
  return tail_.Lines();
}

}  // namespace muster::process
