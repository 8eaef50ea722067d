// FencedFileSystem: wraps another FileSystem for a writer that may be replaced while it sleeps.
// Before each change it checks that the writer is still the current one.
//
// The writer may lose its role between the check and the change. This does no harm if files appear
// by rename from a temporary name (as all files do that must survive) and the new writer first
// fences the old one and then removes its temporary files: files that the old writer made before
// are gone when it renames, and it may not rename those made afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/io/file_system.h"

namespace muster::io {

// As thread-safe as `inner` and `fence`. `inner` must outlive it and the files that it opened. An
// open file also checks before each call, and closes without its buffered data if the check fails;
// a file of OpenForLargeWrite is checked only when it is renamed.
class FencedFileSystem : public FileSystem {
 public:
  // If the status is not OK, the change is not made and returns that status.
  using Fence = std::function<absl::Status()>;
  // `write_fence` is asked before each call of an open file, which may be often; empty: `fence` is.
  FencedFileSystem(FileSystem& inner, Fence fence, const Fence& write_fence = {})
      : inner_(inner), fence_(std::move(fence)), write_fence_(write_fence ? write_fence : fence_) {}

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    return inner_.OpenForRead(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Fenced(inner_.OpenForWrite(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForLargeWrite(
      const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return inner_.OpenForLargeWrite(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Fenced(inner_.OpenForAppend(path));
  }
  absl::StatusOr<FileInfo> Stat(const std::string& path) override { return inner_.Stat(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return inner_.List(folder);
  }
  absl::Status MakeFolders(const std::string& folder) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Explain(inner_.MakeFolders(folder));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Explain(inner_.Rename(from, to));
  }
  absl::Status Remove(const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Explain(inner_.Remove(path));
  }
  absl::Status RemoveAll(const std::string& folder) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return Explain(inner_.RemoveAll(folder));
  }
  absl::Status SyncFolder(const std::string& folder) override { return inner_.SyncFolder(folder); }

 private:
  // A process that is fenced between the check and the change is told that, and not what its change
  // met: its temporary files are gone by then.
  absl::Status Explain(const absl::Status& changed) const {
    if (!changed.ok()) MUSTER_RETURN_IF_ERROR(fence_());
    return changed;
  }

  class File : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> inner, const Fence& fence)
        : inner_(std::move(inner)), fence_(fence) {}
    absl::Status Append(std::string_view bytes) override {
      MUSTER_RETURN_IF_ERROR(fence_());
      return inner_->Append(bytes);
    }
    absl::Status Flush() override {
      MUSTER_RETURN_IF_ERROR(fence_());
      return inner_->Flush();
    }
    absl::Status Sync() override {
      MUSTER_RETURN_IF_ERROR(fence_());
      return inner_->Sync();
    }
    absl::Status Close() override {
      MUSTER_RETURN_IF_ERROR(fence_());
      return inner_->Close();
    }
    const std::string& path() const override { return inner_->path(); }

   private:
    const std::unique_ptr<WritableFile> inner_;
    const Fence fence_;
  };

  absl::StatusOr<std::unique_ptr<WritableFile>> Fenced(
      absl::StatusOr<std::unique_ptr<WritableFile>> file) const {
    MUSTER_RETURN_IF_ERROR(file.status());
    return std::make_unique<File>(*std::move(file), write_fence_);
  }

  FileSystem& inner_;
  const Fence fence_, write_fence_;
};

}  // namespace muster::io
