// FileSystems: one FileSystem for all paths. The table in file_systems.cc says which file system
// serves the paths of which scheme; a new one is added there, and passes
// io/file_system_conformance.h.
//
// Layers below take an io::FileSystem&, which a program makes here once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::files {

class HadoopEnvironment;  // files/hdfs/hadoop_environment.h

// The file system of the paths "NAME://AUTHORITY/...".
struct Scheme {
  std::string name;  // "hdfs"; "": paths of this machine, plain or as file:///PATH
  std::string form;  // how such a path is written, for messages: "hdfs://NAMENODE/PATH"
  // `authority` is canonical. May be called by several threads at once.
  std::function<absl::StatusOr<std::unique_ptr<io::FileSystem>>(const std::string& authority)> open;
  // The one form of all authorities that mean the same file system: adds a default port, or the
  // default name node where a path has no authority. Unset: every authority is canonical.
  std::function<absl::StatusOr<std::string>(const std::string& authority)> canonical = {};
};

// Hands each call to the file system for its path's scheme and authority, which is opened when a
// path first needs it and kept. Paths are passed on whole. Errors besides those of io::FileSystem:
// INVALID_ARGUMENT for an unknown scheme, which names the known ones, and for a Rename between two
// file systems; what `open` and `canonical` return, which are tried again at the next call.
class FileSystems : public io::FileSystem {
 public:
  explicit FileSystems(std::vector<Scheme> schemes) : schemes_(std::move(schemes)) {}

  // The file system for `path`, which lives as long as this object.
  absl::StatusOr<io::FileSystem*> Find(const std::string& path);

  absl::StatusOr<std::unique_ptr<io::RandomAccessFile>> OpenForRead(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForWrite(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForLargeWrite(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForAppend(const std::string& path) override;
  absl::StatusOr<io::FileInfo> Stat(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::StatusOr<std::vector<io::FolderEntry>> ListEntries(const std::string& folder) override;
  absl::Status MakeFolders(const std::string& folder) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveAll(const std::string& folder) override;
  absl::Status SyncFolder(const std::string& folder) override;

 private:
  using Key = std::pair<std::string, std::string>;  // scheme and authority; both "": this machine

  absl::StatusOr<Key> GetKey(const std::string& path) const;
  const Scheme* GetScheme(std::string_view name) const;
  absl::StatusOr<io::FileInfo> Distinct(const std::string& path, io::FileInfo info) const;
  absl::Status Unknown(const std::string& path, std::string_view scheme) const;

  const std::vector<Scheme> schemes_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<io::FileSystem>> open_;
};

// What this process's environment says about HDFS, for calls that are about no file. A wait is told
// on standard error.
std::shared_ptr<HadoopEnvironment> OpenHadoopEnvironment();

// With every scheme that this program knows.
std::unique_ptr<io::FileSystem> OpenFileSystems();

}  // namespace muster::files
