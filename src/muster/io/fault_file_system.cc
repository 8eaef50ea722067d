#include "muster/io/fault_file_system.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::io {
namespace {

constexpr size_t kFileOperations = static_cast<size_t>(FileOperation::kSyncFolder) + 1;

bool Changes(FileOperation operation) { return operation >= FileOperation::kCreate; }

}  // namespace

struct FaultFileSystem::Plan {
  FileOperation operation;
  int64_t at;  // its count
  absl::Status status;
  bool torn = false;
  std::function<void()> wait = {};
};

class FaultFileSystem::ReadFile : public RandomAccessFile {
 public:
  ReadFile(FaultFileSystem& owner, std::unique_ptr<RandomAccessFile> file)
      : owner_(owner), file_(std::move(file)) {}
  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    MUSTER_RETURN_IF_ERROR(owner_.Begin(FileOperation::kRead, path()));
    return file_->Read(offset, size, buffer);
  }
  const std::string& path() const override { return file_->path(); }

 private:
  FaultFileSystem& owner_;
  std::unique_ptr<RandomAccessFile> file_;
};

class FaultFileSystem::WriteFile : public WritableFile {
 public:
  WriteFile(FaultFileSystem& owner, std::unique_ptr<WritableFile> file)
      : owner_(owner), file_(std::move(file)) {}

  absl::Status Append(std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(failure_);
    uint64_t allowed = 0;
    failure_ = owner_.BeginWrite(path(), bytes.size(), &allowed);
    if (failure_.ok()) {
      return owner_.Done(FileOperation::kWrite, path(), file_->Append(bytes));
    }
    if (allowed > 0) {
      MUSTER_RETURN_IF_ERROR(file_->Append(bytes.substr(0, allowed)));
      MUSTER_RETURN_IF_ERROR(file_->Flush());
    }
    return failure_;
  }
  absl::Status Flush() override {
    return Do(FileOperation::kFlush, [this] { return file_->Flush(); });
  }
  absl::Status Sync() override {
    return Do(FileOperation::kSync, [this] { return file_->Sync(); });
  }
  absl::Status Close() override {
    absl::Status status = Do(FileOperation::kClose, [this] { return file_->Close(); });
    failure_ = status;
    return status;
  }
  const std::string& path() const override { return file_->path(); }

 private:
  template <typename Operation>
  absl::Status Do(FileOperation operation, Operation&& call) {
    const absl::Status allowed = owner_.Begin(operation, path());
    MUSTER_RETURN_IF_ERROR(failure_);
    failure_ = allowed;
    MUSTER_RETURN_IF_ERROR(failure_);
    return owner_.Done(operation, path(), call());
  }

  FaultFileSystem& owner_;
  std::unique_ptr<WritableFile> file_;
  absl::Status failure_;
};

FaultFileSystem::FaultFileSystem(FileSystem& inner) : inner_(inner), counts_(kFileOperations) {}
FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::FailNth(FileOperation operation, int64_t n, absl::Status status) {
  const MutexLock lock(&mutex_);
  plans_.push_back(
      {operation, counts_[static_cast<size_t>(operation)] + n, std::move(status), false});
}

void FaultFileSystem::ShortWriteNth(int64_t n, absl::Status status) {
  const MutexLock lock(&mutex_);
  plans_.push_back({FileOperation::kWrite, counts_[static_cast<size_t>(FileOperation::kWrite)] + n,
                    std::move(status), true});
}

void FaultFileSystem::StallNth(FileOperation operation, int64_t n, std::function<void()> wait) {
  const MutexLock lock(&mutex_);
  plans_.push_back({.operation = operation,
                    .at = counts_[static_cast<size_t>(operation)] + n,
                    .status = absl::OkStatus(),
                    .wait = std::move(wait)});
}

void FaultFileSystem::FillDiskAfter(uint64_t bytes) {
  const MutexLock lock(&mutex_);
  disk_left_ = bytes;
}

void FaultFileSystem::CrashAtChange(int64_t n) {
  const MutexLock lock(&mutex_);
  crash_at_ = changes_ + n;
}

void FaultFileSystem::KillAtChange(int64_t n) {
  const MutexLock lock(&mutex_);
  kill_at_ = changes_ + n;
}

int64_t FaultFileSystem::count(FileOperation operation) const {
  const MutexLock lock(&mutex_);
  return counts_[static_cast<size_t>(operation)];
}

int64_t FaultFileSystem::changes() const {
  const MutexLock lock(&mutex_);
  return changes_;
}

std::vector<FaultFileSystem::Event> FaultFileSystem::history() const {
  const MutexLock lock(&mutex_);
  return history_;
}

absl::Status FaultFileSystem::BeginLocked(FileOperation operation, const std::string& path,
                                          bool* torn, std::function<void()>* wait) {
  const int64_t count = ++counts_[static_cast<size_t>(operation)];
  const bool crashed_before = changes_ >= crash_at_;
  if (Changes(operation)) ++changes_;
  if (changes_ >= kill_at_) std::raise(SIGKILL);
  *torn = false;
  if (changes_ >= crash_at_) {
    *torn = !crashed_before;
    return absl::UnavailableError(StrCat(path, ": the process has crashed (made by a test)"));
  }
  for (const Plan& plan : plans_) {
    if (plan.operation != operation || plan.at != count) continue;
    if (plan.wait) {
      *wait = plan.wait;
      continue;
    }
    *torn = plan.torn;
    return Annotate(plan.status, path);
  }
  return absl::OkStatus();
}

absl::Status FaultFileSystem::Begin(FileOperation operation, const std::string& path) {
  std::function<void()> wait;
  absl::Status status;
  {
    const MutexLock lock(&mutex_);
    bool torn;
    status = BeginLocked(operation, path, &torn, &wait);
  }
  if (wait) wait();
  return status;
}

absl::Status FaultFileSystem::BeginWrite(const std::string& path, uint64_t size,
                                         uint64_t* allowed) {
  std::function<void()> wait;
  const absl::Status status = BeginWriteLocked(path, size, allowed, &wait);
  if (wait) wait();
  return status;
}

absl::Status FaultFileSystem::BeginWriteLocked(const std::string& path, uint64_t size,
                                               uint64_t* allowed, std::function<void()>* wait) {
  const MutexLock lock(&mutex_);
  bool torn;
  absl::Status status = BeginLocked(FileOperation::kWrite, path, &torn, wait);
  *allowed = torn ? size / 2 : 0;
  if (!status.ok() || !disk_left_.has_value()) return status;
  *allowed = std::min(size, *disk_left_);
  *disk_left_ -= *allowed;
  if (*allowed == size) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("write ", path, ": No space left on device (made by a test)"));
}

absl::Status FaultFileSystem::Done(FileOperation operation, const std::string& path,
                                   absl::Status status) {
  if (!status.ok()) return status;
  const MutexLock lock(&mutex_);
  history_.push_back({operation, path});
  return status;
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> FaultFileSystem::OpenForRead(
    const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kOpen, path));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, inner_.OpenForRead(path));
  return std::make_unique<ReadFile>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::OpenForWrite(
    const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kCreate, path));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, inner_.OpenForWrite(path));
  MUSTER_RETURN_IF_ERROR(Done(FileOperation::kCreate, path, absl::OkStatus()));
  return std::make_unique<WriteFile>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::OpenForLargeWrite(
    const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kCreate, path));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, inner_.OpenForLargeWrite(path));
  MUSTER_RETURN_IF_ERROR(Done(FileOperation::kCreate, path, absl::OkStatus()));
  return std::make_unique<WriteFile>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::OpenForAppend(
    const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kCreate, path));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, inner_.OpenForAppend(path));
  MUSTER_RETURN_IF_ERROR(Done(FileOperation::kCreate, path, absl::OkStatus()));
  return std::make_unique<WriteFile>(*this, std::move(file));
}

absl::StatusOr<FileInfo> FaultFileSystem::Stat(const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kStat, path));
  return inner_.Stat(path);
}

absl::StatusOr<std::vector<std::string>> FaultFileSystem::List(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kList, folder));
  return inner_.List(folder);
}

absl::Status FaultFileSystem::MakeFolders(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kMakeFolders, folder));
  return Done(FileOperation::kMakeFolders, folder, inner_.MakeFolders(folder));
}

absl::Status FaultFileSystem::Rename(const std::string& from, const std::string& to) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kRename, to));
  return Done(FileOperation::kRename, to, inner_.Rename(from, to));
}

absl::Status FaultFileSystem::Remove(const std::string& path) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kRemove, path));
  return Done(FileOperation::kRemove, path, inner_.Remove(path));
}

absl::Status FaultFileSystem::RemoveAll(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kRemoveAll, folder));
  return Done(FileOperation::kRemoveAll, folder, inner_.RemoveAll(folder));
}

absl::Status FaultFileSystem::SyncFolder(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(Begin(FileOperation::kSyncFolder, folder));
  return Done(FileOperation::kSyncFolder, folder, inner_.SyncFolder(folder));
}

}  // namespace muster::io
