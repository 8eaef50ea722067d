#include "muster/files/file_systems.h"

#include <algorithm>

#include "absl/strings/str_join.h"

#include "muster/io/local_file_system.h"
#include "muster/io/path_scheme.h"

namespace muster::files {
namespace {

using io::FileSystem;

absl::StatusOr<std::unique_ptr<FileSystem>> OpenLocal(const std::string& /*authority*/) {
  return io::NewLocalFileSystem();
}

// The table of all file systems of the program.
std::vector<Scheme> KnownSchemes() {
  return {
      {.name = "", .form = "paths of this machine, plain or as file:///PATH", .open = OpenLocal},
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

absl::StatusOr<io::FileInfo> FileSystems::Stat(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(FileSystem* const files, Find(path));
  MUSTER_ASSIGN_OR_RETURN(io::FileInfo info, files->Stat(path));
  // Two file systems may use the same numbers as identities, so the scheme is put in front.
  MUSTER_ASSIGN_OR_RETURN(const auto key, GetKey(path));
  const auto& [scheme, authority] = key;
  if (!info.identity.empty() && !scheme.empty()) {
    info.identity = StrCat(scheme, "://", authority, " ", info.identity);
  }
  return info;
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

std::unique_ptr<FileSystem> OpenFileSystems() {
  return std::make_unique<FileSystems>(KnownSchemes());
}

}  // namespace muster::files
