// FileSystem: the interface to file storage. Its implementations are local_file_system.h and
// memory_file_system.h here, and those of other schemes in layers above, which
// files/file_systems.cc lists in a table. Each passes io/file_system_conformance.h. A FileSystem is
// passed in, never global, so that a test can simulate a full disk or a short write
// (io/fault_file_system.h).
//
// Paths are plain strings with '/', or "scheme://..." with a scheme that the implementation knows.
// Any thread may call a FileSystem. A WritableFile has one owner thread; any thread may read a
// RandomAccessFile.
//
// Errors name the path and the operation. These codes mean the same for every implementation:
//   NOT_FOUND            the path does not exist
//   FAILED_PRECONDITION  a folder is where a file is needed or the other way round, a folder is not
//                        empty, or the file object is closed
//   INVALID_ARGUMENT     the implementation does not know the path's scheme
//   PERMISSION_DENIED    the user may not do this
//   RESOURCE_EXHAUSTED   the storage or a quota is full
// Any other failure of the storage has another code, such as INTERNAL or UNAVAILABLE.
//
// After an error a call may have been carried out in part: RemoveAll may have removed some files,
// and MakeFolders may have made some parents.
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
  // kept by Rename; a later file may get it after this one was removed. OpenForWrite of a file may
  // make another one. "": not known.
  std::string identity = {};
  // Who may do what with it, for people to read; "" and 0 where the storage does not say that.
  std::string owner = {}, group = {};  // names; of a local file system numbers
  int mode = 0;                        // as chmod takes it: 01755 octal
  bool has_acl = false;                // beside `mode` an access control list counts
  int replication = 0;                 // copies of a file; 0: the storage does not count them
};

struct FolderEntry {
  std::string name = {};  // in its folder
  FileInfo info = {};
};

// A file that is open for reading at any position. Any thread may call it.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Reads up to `size` bytes at `offset` into `buffer` and returns the count, which is less than
  // `size` only at the end of the file, and 0 at or after it. A file that was replaced (Rename) or
  // removed after it was opened is either still read as it was, or Read returns NOT_FOUND: a local
  // file system does the one, a remote one may do the other. Callers must cope with both.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const = 0;
  virtual const std::string& path() const = 0;
};

// A file that is written from its beginning to its end. After an error the file must not be written
// any more: how much of the data it has is not known. The owner calls Close() and checks its
// status; destroying an unclosed file drops the bytes that were not flushed. After a successful
// Close() every call but path() returns FAILED_PRECONDITION.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Adds bytes at the end. They may stay in a buffer of this object, where no reader sees them.
  virtual absl::Status Append(std::string_view bytes) = 0;
  // Makes the bytes visible to readers that open the file from now on. They survive the end of this
  // process, but not a crash of the machine.
  virtual absl::Status Flush() = 0;
  // Flushes, and returns when the bytes are on durable storage. The file's name need not be: see
  // FileSystem::SyncFolder.
  virtual absl::Status Sync() = 0;
  // Flushes and releases the file. It does not sync.
  virtual absl::Status Close() = 0;
  virtual const std::string& path() const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Opens an existing file. NOT_FOUND; FAILED_PRECONDITION for a folder, or for a pipe, which
  // cannot be read at a position.
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(
      const std::string& path) = 0;
  // Creates the file, or empties the one that exists. FAILED_PRECONDITION for a folder. If the
  // folder of `path` does not exist, a local file system returns NOT_FOUND and a remote one may
  // make it with its parents: callers call MakeFolders first.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) = 0;
  // Does what OpenForWrite does, for a large file that is not read soon: the file is written in
  // large blocks and, if the implementation can do that, bypasses the operating system's page
  // cache.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(const std::string& path) {
    return OpenForWrite(path);
  }
  // Creates the file, or opens an existing one to be continued at its end (event files). Errors as
  // for OpenForWrite.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  // Describes a file or folder. NOT_FOUND.
  virtual absl::StatusOr<FileInfo> Stat(const std::string& path) = 0;
  // Returns the names (not paths) in a folder, sorted, hidden ones included, without "." and "..".
  // NOT_FOUND; FAILED_PRECONDITION for a file.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // As List, with what Stat tells of each; by as few calls as the storage allows. What was removed
  // meanwhile is left out.
  virtual absl::StatusOr<std::vector<FolderEntry>> ListEntries(const std::string& folder);
  // Makes the folder and the parents that are missing; it is no error if the folder exists.
  // FAILED_PRECONDITION if a file is in the way. The new names are not durable before SyncFolder.
  virtual absl::Status MakeFolders(const std::string& folder) = 0;
  // Renames a file or a folder within this file system. A file replaces a file, and a folder an
  // empty folder; other processes see the old or the new one at every moment. NOT_FOUND if `from`
  // does not exist; FAILED_PRECONDITION if `to` is a folder that is not empty, or if one of the two
  // is a file and the other a folder. It is not durable before SyncFolder.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Removes a file. NOT_FOUND; FAILED_PRECONDITION for a folder.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Removes a folder and all in it; it is no error if it does not exist. It is not atomic: others
  // may see the folder with some of its files.
  virtual absl::Status RemoveAll(const std::string& folder) = 0;
  // Returns when the names in the folder are durable: files and folders that were made, renamed or
  // removed in it before this call stay so after a crash of the machine. It does not sync the
  // files' contents or the folders below. An implementation whose names are durable at once only
  // checks that the folder exists. NOT_FOUND.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
};

// Reads a whole file. Files over `max_bytes` are refused before memory is allocated. A file without
// a size, such as a pipe at kStandardInput, is read to its end. Errors are those of
// FileSystem::OpenForRead and RandomAccessFile::Read.
absl::StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path,
                                     uint64_t max_bytes = uint64_t{1} << 30);

// Writes under a temporary name, syncs, renames and syncs the folder: a reader finds the old or the
// new contents, and when this returns OK, the new ones are durable. A failure leaves no temporary
// file, but a process that is killed may leave one. Several processes may write the same path: the
// last to rename wins.
absl::Status WriteFileAtomically(FileSystem& files, const std::string& path,
                                 std::string_view contents);

// Paths that match a glob with *, ? and [..] in any component, sorted; a pattern without these is
// returned as it is if the path exists. NOT_FOUND, which names the pattern, if nothing matches.
// Names that start with '.' or '_' (temporary, markers) match only a pattern that starts with the
// same character. A file whose name has brackets, "data[1].csv", is found by its own name.
absl::StatusOr<std::vector<std::string>> Glob(FileSystem& files, const std::string& pattern);

// "a" + "b" = "a/b"; returns `name` if `folder` is empty or `name` is absolute or "scheme://...".
std::string JoinPath(std::string_view folder, std::string_view name);
std::string Dirname(std::string_view path);  // "." if there is none
std::string Basename(std::string_view path);

// The name of a file until it is complete: ".<name>.tmp-<pid>-<hex>" in the same folder. Other
// processes, also on other machines, use other names.
std::string TemporaryPath(const std::string& path);
// The same, but another name at each call: for a file that several threads may write. Thread-safe.
std::string NewTemporaryPath(const std::string& path);
// Whether `name` (without folder) is a temporary name of any process.
bool IsTemporaryName(std::string_view name);
// Removes the temporary files of `path` that killed writers have left, as far as that is possible.
// No process may be writing `path`: its temporary file would be removed too.
void RemoveTemporaries(FileSystem& files, const std::string& path);
// RemoveTemporaries, then WriteFileAtomically: for a file that one process at a time writes.
absl::Status WriteAsOnlyWriter(FileSystem& files, const std::string& path,
                               std::string_view contents);

}  // namespace muster::io
