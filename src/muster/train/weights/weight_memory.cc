#include "muster/train/weights/weight_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_format.h"

#include "muster/base/huge_pages.h"
#include "muster/process/descriptor.h"

namespace muster::train {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kLarge = uint64_t{1} << 20;
constexpr long kTmpfs = 0x01021994;  // statfs(2): TMPFS_MAGIC, files in memory

std::string PrintSize(uint64_t bytes) {
  constexpr uint64_t kGibibyte = uint64_t{1} << 30;
  if (bytes < kGibibyte) return StrCat(bytes >> 20, " MiB");
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / kGibibyte);
}

absl::StatusOr<WeightMemory> MapFile(size_t bytes, const std::string& name, uint64_t free) {
  const char* const given = std::getenv("TMPDIR");
  const std::string folder = given != nullptr && *given != '\0' ? given : "/tmp";
  const auto fail = [&](const std::string& why) {
    return absl::ResourceExhaustedError(StrCat(
        "variable ", name, " takes ", PrintSize(bytes), ", more than half of the free memory (",
        PrintSize(free), "), and ", folder, " cannot hold it instead: ", why,
        "; set TMPDIR to a folder on a disk with room, or take a machine with more memory"));
  };
  std::string path = folder + "/muster-weights-XXXXXX";
  const process::Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) return fail(std::strerror(errno));
  unlink(path.c_str());
  struct statfs system = {};
  if (fstatfs(file.get(), &system) == 0 && system.f_type == kTmpfs) return fail("it is in memory");
  if (const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return fail(std::strerror(error));
  }
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return fail(std::strerror(errno));
  return WeightMemory(static_cast<float*>(data), FreeWeights{.mapped = bytes});
}

}  // namespace

void FreeWeights::operator()(float* data) const {
  if (mapped > 0) {
    munmap(data, mapped);
  } else {
    std::free(data);
  }
}

absl::StatusOr<WeightMemory> AllocateWeights(int64_t floats, const std::string& name,
                                             uint64_t free) {
  const size_t bytes =
      (static_cast<size_t>(floats) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes >= kLarge && bytes > free / 2) return MapFile(bytes, name, free);
  void* const data = std::aligned_alloc(kAlignment, std::max(bytes, kAlignment));
  if (data != nullptr) {
    AskForHugePages(data, bytes);
    return WeightMemory(static_cast<float*>(data));
  }
  return absl::ResourceExhaustedError(
      StrCat("variable ", name, ": no memory for ", floats, " floats"));
}

}  // namespace muster::train
