#include "muster/io/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"

namespace muster::io {
namespace {

// A file or folder, to which a path refers. Open files share it, so that they outlive a rename or
// removal, as inodes do.
struct MemoryNode {
  bool is_folder = false;
  uint64_t number = 0;  // no two nodes of a file system have the same
  Mutex mutex;
  std::string contents ABSL_GUARDED_BY(mutex);
  int64_t modified_ns ABSL_GUARDED_BY(mutex) = 0;
};

// Returns the path in one form: "a//b/../c/" becomes "/a/c".
std::string NormalPath(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    begin = end + 1;
  }
  std::string normal;
  for (const std::string_view part : parts) normal.append("/").append(part);
  return normal.empty() ? "/" : normal;
}

absl::Status Missing(std::string_view operation, std::string_view path) {
  return absl::NotFoundError(StrCat(operation, " ", path, ": no such file or folder"));
}

absl::Status WrongKind(std::string_view operation, std::string_view path, std::string_view why) {
  return absl::FailedPreconditionError(StrCat(operation, " ", path, ": ", why));
}

class MemoryRandomAccessFile : public RandomAccessFile {
 public:
  MemoryRandomAccessFile(std::string path, std::shared_ptr<MemoryNode> node)
      : path_(std::move(path)), node_(std::move(node)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    const MutexLock lock(&node_->mutex);
    const std::string_view contents = node_->contents;
    if (offset >= contents.size()) return size_t{0};
    const size_t count = std::min<size_t>(size, contents.size() - offset);
    std::memcpy(buffer, contents.data() + offset, count);
    return count;
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::shared_ptr<MemoryNode> node_;
};

class MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(std::string path, std::shared_ptr<MemoryNode> node)
      : path_(std::move(path)), node_(std::move(node)) {}

  absl::Status Append(std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(Usable());
    pending_.append(bytes);
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    MUSTER_RETURN_IF_ERROR(Usable());
    const MutexLock lock(&node_->mutex);
    node_->contents.append(pending_);
    if (!pending_.empty()) ++node_->modified_ns;
    pending_.clear();
    return absl::OkStatus();
  }

  absl::Status Sync() override { return Flush(); }

  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(Flush());
    closed_ = true;
    return absl::OkStatus();
  }

  const std::string& path() const override { return path_; }

 private:
  absl::Status Usable() const {
    if (closed_) return absl::FailedPreconditionError(StrCat(path_, " is closed"));
    return absl::OkStatus();
  }

  std::string path_;
  std::shared_ptr<MemoryNode> node_;
  std::string pending_;
  bool closed_ = false;
};

class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem() {
    const MutexLock lock(&mutex_);
    NewNode("/", true);
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    const MutexLock lock(&mutex_);
    const auto found = nodes_.find(NormalPath(path));
    if (found == nodes_.end()) return Missing("open", path);
    if (found->second->is_folder) return WrongKind("open", path, "it is a folder");
    return std::make_unique<MemoryRandomAccessFile>(path, found->second);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    return OpenWritable(path, true);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return OpenWritable(path, false);
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path) override {
    const MutexLock lock(&mutex_);
    const auto found = nodes_.find(NormalPath(path));
    if (found == nodes_.end()) return Missing("stat", path);
    const MutexLock node_lock(&found->second->mutex);
    return FileInfo{.size = found->second->contents.size(),
                    .modified_ns = found->second->modified_ns,
                    .is_folder = found->second->is_folder,
                    .identity = StrCat(found->second->number)};
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    const MutexLock lock(&mutex_);
    const std::string normal = NormalPath(folder);
    MUSTER_RETURN_IF_ERROR(WantFolder("list", folder, normal));
    const std::string prefix = Prefix(normal);
    std::vector<std::string> names;
    for (auto it = nodes_.lower_bound(prefix); it != nodes_.end(); ++it) {
      if (it->first.compare(0, prefix.size(), prefix) != 0) break;
      std::string name = it->first.substr(prefix.size());
      if (!name.empty() && name.find('/') == std::string::npos) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status MakeFolders(const std::string& folder) override {
    const MutexLock lock(&mutex_);
    const std::string normal = NormalPath(folder);
    for (size_t end = 0; end < normal.size() && normal != "/";) {
      end = std::min(normal.find('/', end + 1), normal.size());
      const std::string part = normal.substr(0, end);
      const auto found = nodes_.find(part);
      if (found == nodes_.end()) {
        NewNode(part, true);
      } else if (!found->second->is_folder) {
        return WrongKind("make folder", folder, StrCat(part, " is a file"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    const MutexLock lock(&mutex_);
    const std::string source = NormalPath(from), target = NormalPath(to);
    const std::string both = StrCat(from, " to ", to);
    const auto moved = nodes_.find(source);
    if (moved == nodes_.end()) return Missing("rename", both);
    MUSTER_RETURN_IF_ERROR(WantFolder("rename", both, Dirname(target)));
    if (source == target) return absl::OkStatus();
    const std::shared_ptr<MemoryNode> node = moved->second;
    if (node->is_folder && target.compare(0, source.size() + 1, source + "/") == 0) {
      return WrongKind("rename", both, "a folder cannot go into itself");
    }
    const auto replaced = nodes_.find(target);
    if (replaced != nodes_.end()) {
      if (replaced->second->is_folder != node->is_folder) {
        return WrongKind("rename", both, "one is a folder, the other a file");
      }
      if (node->is_folder && HasChildren(target)) {
        return WrongKind("rename", both, "the folder is not empty");
      }
    }
    nodes_.erase(source);
    nodes_[target] = node;
    if (node->is_folder) MoveChildren(Prefix(source), Prefix(target));
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    const MutexLock lock(&mutex_);
    const auto found = nodes_.find(NormalPath(path));
    if (found == nodes_.end()) return Missing("remove", path);
    if (found->second->is_folder) return WrongKind("remove", path, "it is a folder");
    nodes_.erase(found);
    return absl::OkStatus();
  }

  absl::Status RemoveAll(const std::string& folder) override {
    const MutexLock lock(&mutex_);
    const std::string normal = NormalPath(folder);
    const std::string prefix = Prefix(normal);
    std::erase_if(nodes_, [&](const auto& entry) {
      return entry.first != "/" &&
             (entry.first == normal || entry.first.compare(0, prefix.size(), prefix) == 0);
    });
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& folder) override {
    const MutexLock lock(&mutex_);
    return WantFolder("sync folder", folder, NormalPath(folder));
  }

 private:
  // Returns the beginning of the paths of all that is in a folder.
  static std::string Prefix(const std::string& normal) {
    return normal == "/" ? "/" : normal + "/";
  }

  std::shared_ptr<MemoryNode> NewNode(const std::string& normal, bool is_folder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto node = std::make_shared<MemoryNode>();
    node->is_folder = is_folder;
    node->number = ++made_;
    nodes_[normal] = node;
    return node;
  }

  absl::Status WantFolder(std::string_view operation, std::string_view path,
                          const std::string& normal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = nodes_.find(normal);
    if (found == nodes_.end()) return Missing(operation, path);
    if (!found->second->is_folder) {
      return WrongKind(operation, path, StrCat(normal, " is not a folder"));
    }
    return absl::OkStatus();
  }

  bool HasChildren(const std::string& normal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string prefix = Prefix(normal);
    const auto child = nodes_.lower_bound(prefix);
    return child != nodes_.end() && child->first.compare(0, prefix.size(), prefix) == 0;
  }

  void MoveChildren(const std::string& from, const std::string& to)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::pair<std::string, std::shared_ptr<MemoryNode>>> moved;
    for (auto it = nodes_.lower_bound(from);
         it != nodes_.end() && it->first.compare(0, from.size(), from) == 0;) {
      moved.emplace_back(to + it->first.substr(from.size()), std::move(it->second));
      it = nodes_.erase(it);
    }
    for (auto& [path, node] : moved) nodes_[path] = std::move(node);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenWritable(const std::string& path,
                                                             bool truncate) {
    const MutexLock lock(&mutex_);
    const std::string normal = NormalPath(path);
    MUSTER_RETURN_IF_ERROR(WantFolder("open for writing", path, Dirname(normal)));
    const auto found = nodes_.find(normal);
    std::shared_ptr<MemoryNode> node;
    if (found == nodes_.end()) {
      node = NewNode(normal, false);
    } else if (found->second->is_folder) {
      return WrongKind("open for writing", path, "it is a folder");
    } else {
      node = found->second;
    }
    if (truncate) {
      const MutexLock node_lock(&node->mutex);
      node->contents.clear();
      ++node->modified_ns;
    }
    return std::make_unique<MemoryWritableFile>(path, std::move(node));
  }

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<MemoryNode>> nodes_ ABSL_GUARDED_BY(mutex_);
  uint64_t made_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<FileSystem> NewMemoryFileSystem() { return std::make_unique<MemoryFileSystem>(); }

}  // namespace muster::io
