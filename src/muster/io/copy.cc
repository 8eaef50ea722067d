#include "muster/io/copy.h"

#include <memory>
#include <vector>

namespace muster::io {
namespace {

constexpr size_t kCopyPieceBytes = size_t{1} << 20;
constexpr int kMaxNesting = 32;

absl::Status CopyBytes(const RandomAccessFile& from, WritableFile& to) {
  std::vector<char> piece(kCopyPieceBytes);
  for (uint64_t done = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, from.Read(done, piece.size(), piece.data()));
    MUSTER_RETURN_IF_ERROR(to.Append({piece.data(), count}));
    if (count < piece.size()) return to.Sync();
    done += count;
  }
}

// `path` is the path of `from` below the copied folder; if it is empty, `from` is the folder
// itself.
absl::Status CopyBelow(FileSystem& files, const std::string& from, const std::string& to,
                       const std::string& path, const LeaveOut& leave_out, int depth) {
  if (depth > kMaxNesting) {
    return absl::FailedPreconditionError(
        StrCat("copy ", from, ": folders are nested more than ", kMaxNesting, " deep"));
  }
  MUSTER_RETURN_IF_ERROR(files.MakeFolders(to));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(from));
  for (const std::string& name : names) {
    const std::string below = path.empty() ? name : JoinPath(path, name);
    if (IsTemporaryName(name) || (leave_out && leave_out(below))) continue;
    const std::string source = JoinPath(from, name), copy = JoinPath(to, name);
    MUSTER_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(source));
    MUSTER_RETURN_IF_ERROR(info.is_folder
                               ? CopyBelow(files, source, copy, below, leave_out, depth + 1)
                               : CopyFile(files, source, copy));
  }
  return files.SyncFolder(to);
}

}  // namespace

absl::Status CopyFile(FileSystem& files, const std::string& from, const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> source, files.OpenForRead(from));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, files.OpenForWrite(to));
  absl::Status status = CopyBytes(*source, *copy);
  status.Update(copy->Close());
  return status;
}

absl::Status CopyFolder(FileSystem& files, const std::string& from, const std::string& to,
                        const LeaveOut& leave_out) {
  return CopyBelow(files, from, to, "", leave_out, 0);
}

}  // namespace muster::io
