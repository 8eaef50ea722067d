#include "muster/data/spooled_chunk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/process/descriptor.h"

namespace muster::data {
namespace {

// A file that has no name from the beginning, or loses it at once.
absl::StatusOr<process::Descriptor> MakeNamelessFile(const std::string& folder) {
  process::Descriptor file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) return file;
  std::string path = folder + "/muster-XXXXXX";
  file = process::Descriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("making a file in ", folder));
  unlink(path.c_str());
  return file;
}

absl::Status WriteAll(int file, std::string_view bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, StrCat("writing a file in ", folder));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const void>> Map(int file, size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, "mapping a file of decompressed records");
  // Records are read in any order.
  madvise(at, bytes, MADV_RANDOM);
  return std::shared_ptr<const void>(
      at, [bytes](const void* mapped) { munmap(const_cast<void*>(mapped), bytes); });
}

}  // namespace

std::string GetSpoolFolder() {
  const char* const named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/var/tmp" : named;
}

absl::StatusOr<std::shared_ptr<const Chunk>> SpoolChunk(ChunkStream& stream,
                                                        std::shared_ptr<Chunk> whole,
                                                        const std::string& folder,
                                                        uint64_t max_bad_records) {
  MUSTER_ASSIGN_OR_RETURN(const process::Descriptor file, MakeNamelessFile(folder));
  std::vector<uint32_t> sizes;
  size_t bytes = 0;
  while (whole->bad.size() <= max_bad_records) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<const Chunk> piece, stream.Next());
    if (piece == nullptr) break;
    for (const size_t before : piece->left_out) whole->left_out.push_back(sizes.size() + before);
    whole->bad.insert(whole->bad.end(), piece->bad.begin(), piece->bad.end());
    whole->offsets.insert(whole->offsets.end(), piece->offsets.begin(), piece->offsets.end());
    for (const std::string_view record : piece->records) {
      sizes.push_back(static_cast<uint32_t>(record.size()));
    }
    bytes += piece->bytes.size();
    MUSTER_RETURN_IF_ERROR(WriteAll(file.get(), piece->bytes, folder));
  }
  whole->bytes.clear();
  if (bytes == 0) return whole;
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const void> mapped, Map(file.get(), bytes));
  const auto* at = static_cast<const char*>(mapped.get());
  whole->records.reserve(sizes.size());
  for (const uint32_t size : sizes) {
    whole->records.emplace_back(at, size);
    at += size;
  }
  whole->memory.push_back(std::move(mapped));
  return whole;
}

}  // namespace muster::data
