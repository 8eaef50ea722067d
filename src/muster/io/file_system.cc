#include "muster/io/file_system.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include "muster/io/glob_match.h"
#include "muster/io/path_scheme.h"

namespace muster::io {
namespace {

constexpr std::string_view kTemporary = ".tmp-";

absl::Status WriteAndClose(FileSystem& files, const std::string& path, std::string_view contents) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.OpenForWrite(path));
  absl::Status status = file->Append(contents);
  if (status.ok()) status = file->Sync();
  const absl::Status closed = file->Close();
  return status.ok() ? closed : status;
}

// Reads a file that does not tell its size.
absl::StatusOr<std::string> ReadToEnd(const RandomAccessFile& file, uint64_t max_bytes) {
  constexpr size_t kBytesAtOnce = size_t{64} << 10;
  std::string contents;
  while (true) {
    const size_t begin = contents.size();
    contents.resize(begin + kBytesAtOnce);
    MUSTER_ASSIGN_OR_RETURN(const size_t size,
                            file.Read(begin, kBytesAtOnce, contents.data() + begin));
    contents.resize(begin + size);
    if (contents.size() > max_bytes) {
      return absl::InvalidArgumentError(StrCat("read ", file.path(), ": it has more than the ",
                                               max_bytes, " bytes that are accepted here"));
    }
    if (size < kBytesAtOnce) return contents;
  }
}

// A folder that does not exist, or that is a file, matches nothing.
bool MatchesNothing(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

// Replaces every folder in *paths by the names in it that `component` matches.
absl::Status ExpandComponent(FileSystem& files, std::string_view component, bool last,
                             std::vector<std::string>* paths) {
  std::vector<std::string> expanded;
  for (const std::string& folder : *paths) {
    if (!HasWildcard(component)) {
      std::string path = JoinPath(folder, component);
      absl::Status found = files.Stat(path).status();
      if (found.ok()) {
        expanded.push_back(std::move(path));
      } else if (!MatchesNothing(found)) {
        return found;
      }
      continue;
    }
    absl::StatusOr<std::vector<std::string>> names = files.List(folder.empty() ? "." : folder);
    if (!names.ok()) {
      if (MatchesNothing(names.status())) continue;
      return names.status();
    }
    for (const std::string& name : *names) {
      if (!MatchesWildcards(component, name)) continue;
      std::string path = JoinPath(folder, name);
      if (!last) {
        absl::StatusOr<FileInfo> info = files.Stat(path);
        if (!info.ok() || !info->is_folder) continue;
      }
      expanded.push_back(std::move(path));
    }
  }
  *paths = std::move(expanded);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FolderEntry>> FileSystem::ListEntries(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(folder));
  std::vector<FolderEntry> entries;
  for (const std::string& name : names) {
    auto info = Stat(JoinPath(folder, name));
    if (absl::IsNotFound(info.status())) continue;
    MUSTER_RETURN_IF_ERROR(info.status());
    entries.push_back({name, *std::move(info)});
  }
  return entries;
}

absl::StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path,
                                     uint64_t max_bytes) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path));
  if (info.size > max_bytes) {
    return absl::InvalidArgumentError(StrCat("read ", path, ": it has ", info.size,
                                             " bytes, more than the ", max_bytes,
                                             " that are accepted here"));
  }
  if (info.size == 0) return ReadToEnd(*file, max_bytes);
  std::string contents(info.size, '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t size, file->Read(0, contents.size(), contents.data()));
  contents.resize(size);
  return contents;
}

absl::Status WriteFileAtomically(FileSystem& files, const std::string& path,
                                 std::string_view contents) {
  const std::string temporary = TemporaryPath(path);
  absl::Status status = WriteAndClose(files, temporary, contents);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    files.Remove(temporary).IgnoreError();  // the first failure is the one to tell
    return status;
  }
  return files.SyncFolder(Dirname(path));
}

absl::StatusOr<std::vector<std::string>> Glob(FileSystem& files, const std::string& pattern) {
  // The path up to the last '/' before the first wildcard is taken unchanged. An authority has no
  // wildcards: the brackets of "hdfs://[::1]:9870/" belong to an address.
  const size_t root = PathRootSize(pattern);
  const size_t wildcard = std::min(pattern.find_first_of("*?[", root), pattern.size());
  std::vector<std::string> paths;
  const bool may_be_name = wildcard < pattern.size() && pattern[wildcard] == '[';
  if (may_be_name && files.Stat(pattern).ok()) {
    paths.push_back(pattern);
  } else if (wildcard == pattern.size()) {
    absl::Status found = files.Stat(pattern).status();
    if (found.ok()) {
      paths.push_back(pattern);
    } else if (!MatchesNothing(found)) {
      return found;
    }
  } else {
    const size_t slash = pattern.rfind('/', wildcard);
    size_t begin = slash == std::string::npos ? 0 : slash + 1;
    paths.push_back(begin == 0 ? "" : Dirname(pattern.substr(0, begin)));
    while (begin < pattern.size()) {
      const size_t end = std::min(pattern.find('/', begin), pattern.size());
      const std::string_view component = std::string_view(pattern).substr(begin, end - begin);
      if (!component.empty()) {
        MUSTER_RETURN_IF_ERROR(ExpandComponent(files, component, end == pattern.size(), &paths));
      }
      begin = end + 1;
    }
  }
  if (paths.empty()) return absl::NotFoundError(StrCat("no file matches '", pattern, "'"));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  const bool absolute = (!name.empty() && name.front() == '/') || !PathScheme(name).empty();
  if (folder.empty() || absolute) return std::string(name);
  return StrCat(folder, folder.back() == '/' ? "" : "/", name);
}

std::string Dirname(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  const size_t root = PathRootSize(path);
  if (slash < root) return std::string(path.substr(0, root));
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::string Basename(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string TemporaryPath(const std::string& path) {
  // A pid alone is not enough: in containers every process may have the same one.
  static const uint32_t kRandom = std::random_device()();
  const size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  return StrCat(path.substr(0, name), ".", path.substr(name), kTemporary, getpid(), "-",
                absl::Hex(kRandom, absl::kZeroPad8));
}

std::string NewTemporaryPath(const std::string& path) {
  static std::atomic<uint32_t> calls = 0;
  return StrCat(TemporaryPath(path), absl::Hex(++calls));
}

bool IsTemporaryName(std::string_view name) {
  return name.starts_with('.') && name.find(kTemporary) != std::string_view::npos;
}

void RemoveTemporaries(FileSystem& files, const std::string& path) {
  const std::string folder = Dirname(path);
  const std::string start = StrCat(".", Basename(path), kTemporary);
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.starts_with(start)) files.Remove(JoinPath(folder, name)).IgnoreError();
  }
}

absl::Status WriteAsOnlyWriter(FileSystem& files, const std::string& path,
                               std::string_view contents) {
  RemoveTemporaries(files, path);
  return WriteFileAtomically(files, path, contents);
}

}  // namespace muster::io
