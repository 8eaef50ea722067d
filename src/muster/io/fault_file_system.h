// FaultFileSystem: wraps another FileSystem and makes operations fail on request, to test a full
// disk, a short write or a crash. It also records the operations in order.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/io/file_system.h"

namespace muster::io {

// kOpen is opening for reading; kCreate opening for writing or appending; kWrite one Append.
enum class FileOperation {
  kOpen,
  kRead,
  kStat,
  kList,
  kCreate,
  kWrite,
  kFlush,
  kSync,
  kClose,
  kMakeFolders,
  kRename,
  kRemove,
  kRemoveAll,
  kSyncFolder,
};

// Thread-safe; its files are as thread-safe as those of `inner`. `inner` must outlive it.
class FaultFileSystem : public FileSystem {
 public:
  struct Event {
    FileOperation operation;
    std::string path;  // the target of a rename
    friend bool operator==(const Event&, const Event&) = default;
  };

  explicit FaultFileSystem(FileSystem& inner);
  ~FaultFileSystem() override;

  // The n-th `operation` from now on (1: the next) fails with `status` and is not done.
  void FailNth(FileOperation operation, int64_t n, absl::Status status);
  // The n-th Append from now on writes half of its bytes, flushes them and then fails.
  void ShortWriteNth(int64_t n, absl::Status status);
  // The n-th `operation` from now on first calls `wait` on the calling thread and proceeds when it
  // returns: a disk that stalls. Other operations continue meanwhile.
  void StallNth(FileOperation operation, int64_t n, std::function<void()> wait);
  // After `bytes` more bytes appended, writes fail with RESOURCE_EXHAUSTED; what fits is written.
  void FillDiskAfter(uint64_t bytes);
  // Simulates a crash of the process: the n-th operation from now on that changes something fails
  // with UNAVAILABLE, and so does every operation after it. Buffered data of files is lost; if the
  // n-th operation is a write, half of its bytes arrive.
  void CrashAtChange(int64_t n);

  // Kills this process by SIGKILL in place of the n-th operation from now on that changes
  // something: for a test's child process.
  void KillAtChange(int64_t n);

  // The number of calls of `operation` so far, failed ones included.
  int64_t count(FileOperation operation) const;
  // Operations so far that change something (kCreate and below): the n of CrashAtChange.
  int64_t changes() const;
  // Every operation that changes something and succeeded, in order.
  std::vector<Event> history() const;

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override;
  absl::StatusOr<FileInfo> Stat(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status MakeFolders(const std::string& folder) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveAll(const std::string& folder) override;
  absl::Status SyncFolder(const std::string& folder) override;

 private:
  class ReadFile;
  class WriteFile;
  struct Plan;

  // Counts the operation and says whether it may be done.
  absl::Status Begin(FileOperation operation, const std::string& path);
  // The same for an Append of `size` bytes; *allowed of them may be written even if it fails.
  absl::Status BeginWrite(const std::string& path, uint64_t size, uint64_t* allowed);
  absl::Status BeginWriteLocked(const std::string& path, uint64_t size, uint64_t* allowed,
                                std::function<void()>* wait);
  // Counts the operation and applies the plans to it. Call *wait, which may be empty, without the
  // mutex.
  absl::Status BeginLocked(FileOperation operation, const std::string& path, bool* torn,
                           std::function<void()>* wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Done(FileOperation operation, const std::string& path, absl::Status status);

  FileSystem& inner_;
  mutable Mutex mutex_;
  std::vector<Plan> plans_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Event> history_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t crash_at_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  int64_t kill_at_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  std::optional<uint64_t> disk_left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::io
