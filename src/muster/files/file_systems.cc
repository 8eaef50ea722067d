#include "muster/files/file_systems.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_join.h"

#include "muster/files/hdfs/hadoop_environment.h"
#include "muster/files/hdfs/hdfs_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/path_scheme.h"

namespace muster::files {
namespace {

using io::FileSystem;

absl::StatusOr<std::unique_ptr<FileSystem>> OpenLocal(const std::string& /*authority*/) {
  return io::NewLocalFileSystem();
}

// A wait of minutes must not look like a program that hangs.
void TellUser(const std::string& text) { std::fprintf(stderr, "muster: %s\n", text.c_str()); }

Scheme HdfsScheme(const std::shared_ptr<HadoopEnvironment>& hadoop, const std::string& name,
                  std::string form) {
  return {.name = name,
          .form = std::move(form),
          .open = [hadoop, name](
                      const std::string& authority) -> absl::StatusOr<std::unique_ptr<FileSystem>> {
            MUSTER_ASSIGN_OR_RETURN(NameNodes nodes, hadoop->Resolve(name, authority));
            MUSTER_ASSIGN_OR_RETURN(auto calls, hadoop->Open(std::move(nodes)));
            return NewHdfsFileSystem(std::move(calls));
          },
          .canonical = [hadoop, name](const std::string& authority) -> absl::StatusOr<std::string> {
            MUSTER_ASSIGN_OR_RETURN(const NameNodes nodes, hadoop->Resolve(name, authority));
            return nodes.authority;
          }};
}

// The table of all file systems of the program.
std::vector<Scheme> KnownSchemes() {
  const auto hadoop = OpenHadoopEnvironment();
  return {
      {.name = "", .form = "paths of this machine, plain or as file:///PATH", .open = OpenLocal},
      HdfsScheme(hadoop, "hdfs", "hdfs://NAMENODE:8020/PATH"),
      HdfsScheme(hadoop, "webhdfs", "webhdfs://NAMENODE:9870/PATH"),
      HdfsScheme(hadoop, "swebhdfs", "swebhdfs://NAMENODE:9871/PATH"),
  };
}

}  // namespace

const Scheme* FileSystems::GetScheme(std::string_view name) const {
  const auto found = std::find_if(schemes_.begin(), schemes_.end(),
                                  [&](const Scheme& each) { return each.name == name; });
  return found == schemes_.end() ? nullptr : &*found;
}

absl::StatusOr<FileSystems::Key> FileSystems::GetKey(const std::string& path) const {
  const std::string_view name = io::PathScheme(path);
  const bool is_local = name.empty() || name == io::kFileScheme;
  const Scheme* const scheme = GetScheme(is_local ? "" : name);
  if (scheme == nullptr) return Unknown(path, name);
  std::string authority(is_local ? "" : io::PathAuthority(path));
  if (scheme->canonical) {
    auto canonical = scheme->canonical(authority);
    if (!canonical.ok()) return Annotate(canonical.status(), path);
    authority = *std::move(canonical);
  }
  return Key{scheme->name, std::move(authority)};
}

absl::Status FileSystems::Unknown(const std::string& path, std::string_view scheme) const {
  const auto form = [](std::string* out, const Scheme& each) { *out += each.form; };
  return absl::InvalidArgumentError(StrCat(path, ": there is no file system for '", scheme,
                                           "://' here; known are ",
                                           absl::StrJoin(schemes_, ", ", form)));
}

absl::StatusOr<FileSystem*> FileSystems::Find(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const Key key, GetKey(path));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = open_.find(key); found != open_.end()) return found->second.get();
  }
  // The lock is not held: opening may wait for a network, and other file systems must not wait for
  // that.
  auto opened = GetScheme(key.first)->open(key.second);
  if (!opened.ok()) return Annotate(opened.status(), path);
  const std::lock_guard lock(mutex_);
  return open_.try_emplace(key, *std::move(opened)).first->second.get();
}

absl::StatusOr<std::unique_ptr<io::RandomAccessFile>> FileSystems::OpenForRead(
    const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  return files->OpenForRead(path);
}

absl::StatusOr<std::unique_ptr<io::WritableFile>> FileSystems::OpenForWrite(
    const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  return files->OpenForWrite(path);
}

absl::StatusOr<std::unique_ptr<io::WritableFile>> FileSystems::OpenForLargeWrite(
    const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  return files->OpenForLargeWrite(path);
}

absl::StatusOr<std::unique_ptr<io::WritableFile>> FileSystems::OpenForAppend(
    const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  return files->OpenForAppend(path);
}

// Two file systems may use the same numbers as identities, so the scheme is put in front.
absl::StatusOr<io::FileInfo> FileSystems::Distinct(const std::string& path,
                                                   io::FileInfo info) const {
  MUSTER_ASSIGN_OR_RETURN(const auto key, GetKey(path));
  const auto& [scheme, authority] = key;
  if (!info.identity.empty() && !scheme.empty()) {
    info.identity = StrCat(scheme, "://", authority, " ", info.identity);
  }
  return info;
}

absl::StatusOr<io::FileInfo> FileSystems::Stat(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  MUSTER_ASSIGN_OR_RETURN(io::FileInfo info, files->Stat(path));
  return Distinct(path, std::move(info));
}

absl::StatusOr<std::vector<io::FolderEntry>> FileSystems::ListEntries(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(folder));
  MUSTER_ASSIGN_OR_RETURN(auto entries, files->ListEntries(folder));
  for (io::FolderEntry& entry : entries) {
    MUSTER_ASSIGN_OR_RETURN(entry.info, Distinct(folder, std::move(entry.info)));
  }
  return entries;
}

absl::StatusOr<std::vector<std::string>> FileSystems::List(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(folder));
  return files->List(folder);
}

absl::Status FileSystems::MakeFolders(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(folder));
  return files->MakeFolders(folder);
}

absl::Status FileSystems::Rename(const std::string& from, const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(from));
  MUSTER_ASSIGN_OR_RETURN(const FileSystem* const other, Find(to));
  if (files != other) {
    return absl::InvalidArgumentError(
        StrCat("rename ", from, " to ", to, ": these are two file systems; copy the file"));
  }
  return files->Rename(from, to);
}

absl::Status FileSystems::Remove(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  return files->Remove(path);
}

absl::Status FileSystems::RemoveAll(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(folder));
  return files->RemoveAll(folder);
}

absl::Status FileSystems::SyncFolder(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(folder));
  return files->SyncFolder(folder);
}

std::shared_ptr<HadoopEnvironment> OpenHadoopEnvironment() {
  return std::make_shared<HadoopEnvironment>(io::NewLocalFileSystem(), TellUser);
}

std::unique_ptr<FileSystem> OpenFileSystems() {
  return std::make_unique<FileSystems>(KnownSchemes());
}

}  // namespace muster::files
