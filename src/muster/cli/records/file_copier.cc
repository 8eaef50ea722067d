#include "muster/cli/records/file_copier.h"

#include <memory>
#include <utility>
#include <vector>

#include "muster/cli/common/interrupt.h"
#include "muster/io/path_scheme.h"

namespace muster::cli {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int kMaxNesting = 32;

absl::Status CheckRuns() {
  return InterruptScope::requested() ? absl::CancelledError("stopped") : absl::OkStatus();
}

}  // namespace

absl::Status FileCopier::Copy(std::string from, const std::string& to) {
  while (from.size() > io::PathRootSize(from) && from.ends_with('/')) from.pop_back();
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo source, files_.Stat(from));
  std::string target = to;
  const auto there = files_.Stat(to);
  if (there.ok() && there->is_folder) target = io::JoinPath(to, io::Basename(from));
  MUSTER_RETURN_IF_ERROR(CheckTarget(from, source.is_folder, target));
  const std::string temporary = io::TemporaryPath(target);
  absl::Status status =
      source.is_folder ? CopyFolder(from, temporary, 0) : CopyFile(from, temporary);
  if (status.ok()) status = files_.Rename(temporary, target);
  if (status.ok()) return files_.SyncFolder(io::Dirname(target));
  // The first failure is the one to tell.
  (source.is_folder ? files_.RemoveAll(temporary) : files_.Remove(temporary)).IgnoreError();
  return Annotate(status, StrCat("copy ", from, " to ", target));
}

absl::Status FileCopier::CheckTarget(const std::string& from, bool is_folder,
                                     const std::string& to) const {
  const auto there = files_.Stat(to);
  if (there.ok()) {
    if (there->is_folder || is_folder) {
      return absl::FailedPreconditionError(StrCat(to, " exists: remove it, or give another name"));
    }
    const auto source = files_.Stat(from);
    if (source.ok() && !source->identity.empty() && source->identity == there->identity) {
      return absl::FailedPreconditionError(StrCat(to, " is the file ", from, " itself"));
    }
    if (replaces_) return absl::OkStatus();
    return absl::FailedPreconditionError(StrCat(to, " exists: to replace it, give --force"));
  }
  if (!absl::IsNotFound(there.status())) return there.status();
  const std::string folder = io::Dirname(to);
  const auto above = files_.Stat(folder);
  if (!absl::IsNotFound(above.status())) return above.status();
  return absl::FailedPreconditionError(
      StrCat("the folder ", folder, " does not exist; make it: muster fs mkdir ", folder));
}

absl::Status FileCopier::CopyFile(const std::string& from, const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<io::RandomAccessFile> source,
                          files_.OpenForRead(from));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<io::WritableFile> copy, files_.OpenForWrite(to));
  std::vector<char> piece(kPieceBytes);
  size_t count = piece.size();
  for (uint64_t done = 0; count == piece.size(); done += count) {
    MUSTER_RETURN_IF_ERROR(CheckRuns());
    MUSTER_ASSIGN_OR_RETURN(count, source->Read(done, piece.size(), piece.data()));
    MUSTER_RETURN_IF_ERROR(copy->Append({piece.data(), count}));
    bytes_ += count;
    progress_.Update(bytes_);
  }
  ++count_;
  MUSTER_RETURN_IF_ERROR(copy->Sync());
  return copy->Close();
}

absl::Status FileCopier::CopyFolder(const std::string& from, const std::string& to, int depth) {
  if (depth > kMaxNesting) {
    return absl::FailedPreconditionError(
        StrCat(from, ": folders are nested more than ", kMaxNesting, " deep"));
  }
  MUSTER_RETURN_IF_ERROR(files_.MakeFolders(to));
  MUSTER_ASSIGN_OR_RETURN(const auto entries, files_.ListEntries(from));
  for (const io::FolderEntry& entry : entries) {
    if (io::IsTemporaryName(entry.name)) continue;
    const std::string source = io::JoinPath(from, entry.name), copy = io::JoinPath(to, entry.name);
    MUSTER_RETURN_IF_ERROR(entry.info.is_folder ? CopyFolder(source, copy, depth + 1)
                                                : CopyFile(source, copy));
  }
  return files_.SyncFolder(to);
}

}  // namespace muster::cli
