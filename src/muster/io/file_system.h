// FileSystem: the interface to file storage. Each implementation has its own folder (local/,
// memory/, later hdfs/) and passes io/file_system_conformance.h. It is passed in, never global, so
// that a test can simulate a full disk or a short write (io/fault_file_system.h).
//
// Paths are plain strings with '/', or "scheme://..." with a scheme that the implementation knows.
// All calls are thread-safe on the FileSystem; a file object has one owner thread, except
// RandomAccessFile. Errors name the path and the operation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"

namespace muster::io {

struct FileInfo {
  uint64_t size = 0;        // bytes; 0 for a folder
  int64_t modified_ns = 0;  // since the Unix epoch
  bool is_folder = false;
  // Equal for two paths of one FileSystem if and only if they name the same file or folder, and
  // kept by Rename; a later file may get it after this one was removed. "": not known.
  std::string identity = {};
};

// Read-only, positioned; Read may be called from several threads.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads up to `size` bytes at `offset` into `buffer`; returns the count, less than `size` only at
  // the end of the file.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const = 0;
  virtual const std::string& path() const = 0;
};

// Write-only, appending. A write that failed leaves the file unusable; Close() must be called and
// its status looked at. Destroying an unclosed file drops what was not flushed.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(std::string_view bytes) = 0;
  // Hands the data to the operating system.
  virtual absl::Status Flush() = 0;
  // Writes the data to the device.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
  virtual const std::string& path() const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(
      const std::string& path) = 0;
  // Creates or truncates; the folder must exist.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) = 0;
  // The same for a large file that is not read soon: it is written in large blocks and, if the
  // implementation can, bypassing the operating system's page cache.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(const std::string& path) {
    return OpenForWrite(path);
  }
  // Creates, or continues at the end (event files).
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path) = 0;
  // Names (not paths) in a folder, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Makes parents as well; no error if the folder exists.
  virtual absl::Status MakeFolders(const std::string& folder) = 0;
  // Atomic; replaces a file.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Removes a folder and all in it; no error if it does not exist.
  virtual absl::Status RemoveAll(const std::string& folder) = 0;
  // Makes renames and new names in the folder durable.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
};

// Reads a whole file; files over `max_bytes` are refused before memory is allocated. A file without
// a size, such as a pipe at kStandardInput, is read to its end.
absl::StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path,
                                     uint64_t max_bytes = uint64_t{1} << 30);

// Writes under a temporary name, syncs, renames and syncs the folder: a reader finds the old or the
// new contents, and a failure leaves no temporary file behind.
absl::Status WriteFileAtomically(FileSystem& files, const std::string& path,
                                 std::string_view contents);

// Paths that match a glob with *, ? and [..] in any component, sorted; a pattern without these is
// returned as it is if the path exists. NOT_FOUND, which names the pattern, if nothing matches.
// Names that start with '.' or '_' (temporary, markers) match only a pattern that starts with the
// same character.
absl::StatusOr<std::vector<std::string>> Glob(FileSystem& files, const std::string& pattern);

// "a" + "b" = "a/b"; returns `name` if `folder` is empty or `name` is absolute or "scheme://...".
std::string JoinPath(std::string_view folder, std::string_view name);
std::string Dirname(std::string_view path);  // "." if there is none
std::string Basename(std::string_view path);

// The name of a file until it is complete: ".<name>.tmp-<pid>-<hex>" in the same folder. Other
// processes, also on other machines, use other names.
std::string TemporaryPath(const std::string& path);
// Whether `name` (without folder) is a temporary name of any process.
bool IsTemporaryName(std::string_view name);
// Removes the temporary files of `path` that killed writers have left, as far as that is possible.
// No process may be writing `path`: its temporary file would be removed too.
void RemoveTemporaries(FileSystem& files, const std::string& path);
// RemoveTemporaries, then WriteFileAtomically: for a file that one process at a time writes.
absl::Status WriteAsOnlyWriter(FileSystem& files, const std::string& path,
                               std::string_view contents);

}  // namespace muster::io
