#include "muster/files/hdfs/hdfs_file_system.h"

#include <algorithm>
#include <utility>

#include "muster/base/strings.h"
#include "muster/files/hdfs/hdfs_file.h"
#include "muster/io/path_scheme.h"

namespace muster::files {
namespace {

using formats::Json;

// "/a/b" of "hdfs://namenode/a//b/": what WebHDFS calls it.
std::string GetName(const std::string& path) {
  std::string_view rest = path;
  rest.remove_prefix(std::min(io::PathRootSize(path), path.size()));
  std::string name;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (!part.empty()) name += StrCat("/", part);
  }
  return name.empty() ? "/" : name;
}

absl::Status IsAFolder(const std::string& path) {
  return absl::FailedPreconditionError(StrCat(path, ": this is a folder"));
}

class HdfsFileSystem : public io::FileSystem {
 public:
  explicit HdfsFileSystem(std::unique_ptr<WebHdfs> calls) : calls_(std::move(calls)) {}

  absl::StatusOr<std::unique_ptr<io::RandomAccessFile>> OpenForRead(
      const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const HdfsFileStatus status, GetStatus(path));
    if (status.info.is_folder) return IsAFolder(path);
    return NewHdfsReader(*calls_, path, GetName(path), status);
  }

  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForWrite(const std::string& path) override {
    const auto info = Stat(path);
    if (!info.ok() && !absl::IsNotFound(info.status())) return info.status();
    if (info.ok() && info->is_folder) return IsAFolder(path);
    return NewHdfsWriter(*calls_, path, GetName(path));
  }

  absl::StatusOr<std::unique_ptr<io::WritableFile>> OpenForAppend(
      const std::string& path) override {
    const auto info = Stat(path);
    if (absl::IsNotFound(info.status())) return OpenForWrite(path);
    MUSTER_RETURN_IF_ERROR(info.status());
    if (info->is_folder) return IsAFolder(path);
    return NewHdfsAppender(*calls_, path, GetName(path), info->size);
  }

  absl::StatusOr<io::FileInfo> Stat(const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(HdfsFileStatus status, GetStatus(path));
    return std::move(status.info);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const auto entries, ListEntries(folder));
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (const io::FolderEntry& entry : entries) names.push_back(entry.name);
    return names;
  }

  absl::StatusOr<std::vector<io::FolderEntry>> ListEntries(const std::string& folder) override {
    MUSTER_ASSIGN_OR_RETURN(const Json json, Call(folder, "GET", "LISTSTATUS"));
    MUSTER_ASSIGN_OR_RETURN(auto statuses, ParseFileStatuses(json, folder));
    if (statuses.size() == 1 && statuses.front().name.empty()) {  // of a file it lists the file
      return absl::FailedPreconditionError(StrCat(folder, ": this is a file, not a folder"));
    }
    std::vector<io::FolderEntry> entries;
    entries.reserve(statuses.size());
    for (HdfsFileStatus& status : statuses) {
      entries.push_back({std::move(status.name), std::move(status.info)});
    }
    return entries;
  }

  absl::Status MakeFolders(const std::string& folder) override {
    return Call(folder, "PUT", "MKDIRS").status();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo source, Stat(from));
    if (GetName(from) == GetName(to)) return absl::OkStatus();
    const auto target = Stat(to);
    if (target.ok() && target->is_folder != source.is_folder) {
      return absl::FailedPreconditionError(
          StrCat("rename ", from, " to ", to, ": one is a file and the other one a folder"));
    }
    return Annotate(calls_->Rename(GetName(from), source.identity, GetName(to)),
                    StrCat("rename ", from, " to ", to));
  }

  absl::Status Remove(const std::string& path) override {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, Stat(path));
    if (info.is_folder) return IsAFolder(path);
    return Call(path, "DELETE", "DELETE").status();
  }

  absl::Status RemoveAll(const std::string& folder) override {
    return Call(folder, "DELETE", "DELETE", {{"recursive", "true"}}).status();
  }

  absl::Status SyncFolder(const std::string& folder) override { return Stat(folder).status(); }

 private:
  absl::StatusOr<HdfsFileStatus> GetStatus(const std::string& path) {
    auto status = calls_->GetStatus(GetName(path));
    return status.ok() ? std::move(status) : Annotate(status.status(), path);
  }

  absl::StatusOr<Json> Call(const std::string& path, const char* method, const char* op,
                            std::vector<std::pair<std::string, std::string>> parameters = {}) {
    auto json = calls_->Call(
        {.method = method, .op = op, .path = GetName(path), .parameters = std::move(parameters)});
    return json.ok() ? std::move(json) : Annotate(json.status(), path);
  }

  const std::unique_ptr<WebHdfs> calls_;
};

}  // namespace

std::unique_ptr<io::FileSystem> NewHdfsFileSystem(std::unique_ptr<WebHdfs> calls) {
  return std::make_unique<HdfsFileSystem>(std::move(calls));
}

}  // namespace muster::files
