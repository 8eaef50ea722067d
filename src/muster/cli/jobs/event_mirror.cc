#include "muster/cli/jobs/event_mirror.h"

#include <algorithm>
#include <vector>

namespace muster::cli {
namespace {

constexpr char kEventFile[] = "tfevents";  // part of the name of each event file
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int kMaxNesting = 16;

}  // namespace

absl::Status EventMirror::Update() { return UpdateFolder("", 0); }

absl::Status EventMirror::UpdateFolder(const std::string& below, int depth) {
  if (depth > kMaxNesting) return absl::OkStatus();
  const auto entries = files_.ListEntries(below.empty() ? from_ : io::JoinPath(from_, below));
  if (absl::IsNotFound(entries.status()) && depth > 0) return absl::OkStatus();  // just removed
  MUSTER_RETURN_IF_ERROR(entries.status());
  for (const io::FolderEntry& entry : *entries) {
    const std::string path = below.empty() ? entry.name : io::JoinPath(below, entry.name);
    if (entry.info.is_folder) {
      MUSTER_RETURN_IF_ERROR(UpdateFolder(path, depth + 1));
    } else if (entry.name.find(kEventFile) != std::string::npos &&
               !io::IsTemporaryName(entry.name)) {
      const absl::Status copied = UpdateFile(path, entry.info.size);
      // A file that was replaced while it was read is copied the next time.
      if (!absl::IsNotFound(copied)) MUSTER_RETURN_IF_ERROR(copied);
    }
  }
  return absl::OkStatus();
}

absl::Status EventMirror::UpdateFile(const std::string& below, uint64_t size) {
  const std::string copy = io::JoinPath(to_, below);
  const auto there = files_.Stat(copy);
  uint64_t done = there.ok() ? there->size : 0;
  if (there.ok() && done == size) return absl::OkStatus();
  const bool is_new = !there.ok() || done > size;
  if (is_new) {
    MUSTER_RETURN_IF_ERROR(files_.MakeFolders(io::Dirname(copy)));
    done = 0;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto source, files_.OpenForRead(io::JoinPath(from_, below)));
  MUSTER_ASSIGN_OR_RETURN(const auto target,
                          is_new ? files_.OpenForWrite(copy) : files_.OpenForAppend(copy));
  std::vector<char> piece(std::min<uint64_t>(kPieceBytes, size - done));
  while (done < size) {
    const size_t wanted = std::min<uint64_t>(piece.size(), size - done);
    MUSTER_ASSIGN_OR_RETURN(const size_t count, source->Read(done, wanted, piece.data()));
    if (count == 0) break;
    MUSTER_RETURN_IF_ERROR(target->Append({piece.data(), count}));
    done += count;
    bytes_ += count;
  }
  return target->Close();
}

}  // namespace muster::cli
