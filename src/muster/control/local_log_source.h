// The log of a task of this machine: the file that its agents write (process/log_file.h) and the
// files that were rotated away from it, as one sequence of bytes.
#pragma once

#include <memory>
#include <string>

#include "muster/control/log_source.h"
#include "muster/process/descriptor.h"

namespace muster::control {

// Signals that something in a folder was written, created or renamed. One owner thread.
class FolderNotice {
 public:
  explicit FolderNotice(const std::string& folder);
  // Readable when something has changed, until Clear(); -1 if the system offers no such notice.
  int fd() const { return notify_.get(); }
  void Clear() const;
  // Waits for a change, at most `seconds` and at most a second, since changes can be missed. The
  // change is cleared.
  void Wait(double seconds) const;

 private:
  process::Descriptor notify_;
};

// A file that becomes shorter than what was read of it was truncated: it is read from its beginning
// again, after a gap. Files that were rotated away and removed before they were read are a gap.
class LocalLogSource : public LogSource {
 public:
  // `path`: the newest file; it need not exist yet. `notice` is of its folder and may be shared.
  LocalLogSource(std::string path, std::shared_ptr<const FolderNotice> notice)
      : path_(std::move(path)), notice_(std::move(notice)) {}

  absl::StatusOr<LogPiece> Read(int64_t offset, size_t max, double wait) override;
  int change_fd() const override { return notice_->fd(); }
  void ClearChange() override { notice_->Clear(); }

 private:
  absl::StatusOr<LogPiece> ReadNow(int64_t offset, size_t max);
  bool OpenOldest();
  bool OpenNext();

  const std::string path_;
  const std::shared_ptr<const FolderNotice> notice_;
  process::Descriptor file_;  // the file that is being read
  int64_t position_ = 0;      // the offset in file_ of the next byte
  int64_t next_ = 0;          // the offset of that byte in the whole log
  bool gap_ = false;          // before the next piece
  // The piece that was read last, in the same file, unless a later file has been opened since.
  int64_t last_position_ = 0, last_offset_ = 0;
  bool last_gap_ = false;
};

}  // namespace muster::control
