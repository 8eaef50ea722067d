// FencedFileSystem: another FileSystem for a writer that may be replaced while it sleeps. Before
// anything is changed it asks whether the writer is still the one.
//
// Between the answer and the change there is a moment. It does no harm where files appear by rename
// from a temporary name (all that must survive does) and whoever takes over first fences this
// writer and then removes its temporary files: what it made before is gone when it renames, and
// what it makes after that it may not rename.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/io/file_system.h"

namespace muster::io {

// Thread-safe as far as `inner`, which must outlive it with the files that it opened, and `fence`
// are. A file that is open asks before each call too, and closes without what it still held back;
// not a large one, which asks where it is renamed.
class FencedFileSystem : public FileSystem {
 public:
  // Not OK: the change is not made, and this is its status.
  using Fence = std::function<absl::Status()>;
  FencedFileSystem(FileSystem& inner, Fence fence) : inner_(inner), fence_(std::move(fence)) {}

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
    return inner_.MakeFolders(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return inner_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return inner_.Remove(path);
  }
  absl::Status RemoveAll(const std::string& folder) override {
    MUSTER_RETURN_IF_ERROR(fence_());
    return inner_.RemoveAll(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override { return inner_.SyncFolder(folder); }

 private:
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
    return std::make_unique<File>(*std::move(file), fence_);
  }

  FileSystem& inner_;
  const Fence fence_;
};

}  // namespace muster::io
