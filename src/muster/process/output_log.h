// Copies a program's output into a log file.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/process/descriptor.h"
#include "muster/process/log_file.h"

namespace muster::process {

// The last lines of a stream, in bounded memory. Of a line rewritten by carriage returns, as
// progress bars do, the last text counts. One owner thread.
class LineTail {
 public:
  // Only the first bytes of a longer line are kept.
  static constexpr size_t kMaxLineBytes = 2000;

  explicit LineTail(size_t max_lines) : max_lines_(max_lines) {}
  void Append(std::string_view bytes);
  // Oldest first, without newlines, otherwise unchanged (not always UTF-8); includes an unfinished
  // last line.
  std::vector<std::string> Lines() const;

 private:
  void AppendToLine(std::string_view piece);
  void FinishLine();

  size_t max_lines_;
  std::deque<std::string> lines_;
  std::string partial_;
  bool returned_ = false;  // the last byte of the open line was a carriage return
};

struct OutputLogOptions {
  LogFileOptions file = {};
  size_t tail_lines = 50;
  // A descriptor that gets the same bytes; -1: none. It stays the caller's, whose process ignores
  // SIGPIPE. Its reader cannot keep the program waiting: see OutputCopy.
  int copy_fd = -1;
};

// Writes bytes to a pipe whose reader may be slow or gone: what the pipe does not take at once is
// kept, and what is more than kMaxBytes is left out, with a line that says how much. One owner
// thread.
class OutputCopy {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  explicit OutputCopy(int fd) : fd_(fd) {}
  void Append(std::string_view bytes);
  // Writes what the pipe takes now.
  void Flush();
  // The same until nothing is left, or so many seconds have passed.
  void Drain(double timeout_seconds);
  // -1 when nothing is kept: poll needs not wait for POLLOUT.
  int waiting_fd() const { return kept_.empty() ? -1 : fd_; }

 private:
  int fd_;  // -1: none, or its reader is gone
  std::string kept_;
  size_t left_out_ = 0;
};

// Reads the pipe of a program's stdout and stderr on its own thread and writes the bytes unchanged
// to a log file as soon as they arrive. The program never waits for disk space: see LogFile.
// Thread-safe, except for Finish and the destructor.
class OutputLog {
 public:
  // Opens the file and makes the pipe. `clock` outlives the log.
  static absl::StatusOr<std::unique_ptr<OutputLog>> Open(const OutputLogOptions& options,
                                                         const Clock* clock);
  // As Finish, but only takes what is in the pipe already.
  ~OutputLog();
  OutputLog(const OutputLog&) = delete;
  OutputLog& operator=(const OutputLog&) = delete;

  // For ChildSpec::stdout_fd and stderr_fd; -1 after Finish or CloseWriter.
  int writer_fd() const { return writer_.get(); }
  // Call it once the last program has been started: the log then ends when the programs close their
  // ends of the pipe. Without this call Finish does it.
  void CloseWriter() { writer_.Reset(); }

  // Call it after the program has ended: reads the rest of the pipe, waiting at most
  // `timeout_seconds` for its end (an escaped process may hold it open), and closes the file.
  // Returns an error if output was lost: how much and why. Further calls return the same.
  absl::Status Finish(double timeout_seconds);

  // Clock's MonotonicNanos when output last arrived; initially, when the log was opened.
  int64_t last_output_nanos() const { return last_output_nanos_; }
  int64_t bytes() const { return bytes_; }            // received so far
  int64_t dropped_bytes() const { return dropped_; }  // of those, lost
  std::vector<std::string> Tail() const;

 private:
  OutputLog(std::unique_ptr<LogFile> file, const OutputLogOptions& options, const Clock* clock);
  void Pump(const std::stop_token& stop);
  void Take(std::string_view bytes);

  const Clock* clock_;
  std::unique_ptr<LogFile> file_;  // used by the pump until it is joined
  std::atomic<int64_t> last_output_nanos_, bytes_ = 0, dropped_ = 0;
  mutable Mutex mutex_;
  LineTail tail_ ABSL_GUARDED_BY(mutex_);
  OutputCopy copy_;  // used by the pump
  Descriptor reader_, writer_;
  Descriptor stop_event_, done_event_;  // eventfd: the pump is to stop; the output has ended
  bool finished_ = false;
  absl::Status result_;
  std::jthread thread_;
};

}  // namespace muster::process
