// FileCopier: copies files and folders from one place to another, of any file systems that Muster
// knows. What is copied has its name only when it is whole.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/status.h"
#include "muster/cli/common/row_progress.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// One owner thread. Between pieces it looks at InterruptScope::requested(): CANCELLED.
class FileCopier {
 public:
  // `replaces`: a file may replace a file. `files` and `progress` must outlive this object.
  FileCopier(io::FileSystem& files, bool replaces, RowProgress& progress)
      : files_(files), replaces_(replaces), progress_(progress) {}

  // Copies the file or folder `from` to the path `to`, or into the folder `to` if that exists.
  // FAILED_PRECONDITION if something with that name exists (a file only without `replaces`) or `to`
  // lies in a folder that does not exist. A failure leaves nothing behind.
  absl::Status Copy(std::string from, const std::string& to);

  uint64_t files() const { return count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  absl::Status CheckTarget(const std::string& from, bool is_folder, const std::string& to) const;
  absl::Status CopyFile(const std::string& from, const std::string& to);
  absl::Status CopyFolder(const std::string& from, const std::string& to, int depth);

  io::FileSystem& files_;
  const bool replaces_;
  RowProgress& progress_;
  uint64_t count_ = 0, bytes_ = 0;
};

}  // namespace muster::cli
