// A log file that rotates and tolerates a full disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/process/descriptor.h"

namespace muster::process {

struct LogFileOptions {
  std::string path = {};
  // When a line begins past this many bytes, or continues past twice as many, FILE is renamed to
  // FILE.1, FILE.1 to FILE.2, and so on; the oldest beyond `kept_files` is removed. 0: never.
  int64_t max_bytes = int64_t{100} << 20;
  int kept_files = 3;
  // Disk space that output leaves free for other files, such as a journal beside it; never more
  // than a twentieth of the disk.
  int64_t spared_bytes = 0;
};

// Appends bytes. When a write fails (the disk is full up to spared_bytes), the bytes that could not
// be written are dropped and counted. Every Append tries again, and the first that succeeds begins
// with a line
// "[muster: N bytes of output lost here: CAUSE]". One owner thread.
class LogFile {
 public:
  // Opens the file for appending, or makes it with mode 0600. A file that is already too large
  // rotates at the first line.
  static absl::StatusOr<std::unique_ptr<LogFile>> Open(const LogFileOptions& options);

  // Never fails: see above.
  void Append(std::string_view bytes);
  // Bytes lost so far.
  int64_t dropped_bytes() const { return dropped_total_; }
  // OK, or an error that says how much was lost and why.
  absl::Status Close();

 private:
  LogFile(const LogFileOptions& options, Descriptor file, int64_t size);
  std::string_view ConsumePiece(std::string_view* bytes) const;
  bool HasRoom(size_t bytes) const;
  bool Write(std::string_view bytes, size_t* written);
  bool WriteNotice();
  bool MustRotate() const;
  void Rotate();

  LogFileOptions options_;
  Descriptor file_;
  int64_t size_ = 0;  // of the file, or since a rotation failed
  bool at_line_start_ = true;
  int64_t dropped_ = 0;  // since the last notice
  int64_t dropped_total_ = 0;
  int error_number_ = 0;  // of the last write that failed
};

}  // namespace muster::process
