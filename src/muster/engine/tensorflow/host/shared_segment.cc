#include "muster/engine/tensorflow/host/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster::engine::tensorflow::host {
namespace {

constexpr int kSegmentSeals = F_SEAL_SHRINK | F_SEAL_SEAL;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

absl::StatusOr<std::byte*> ReserveAddresses() {
  void* const base = mmap(nullptr, kMaxSegmentBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("reserve ", kMaxSegmentBytes >> 30,
                                     " GiB of addresses for the memory shared with a TensorFlow "
                                     "host (a limit of `ulimit -v`?)"));
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create() {
  process::Descriptor memory(memfd_create("muster-tensorflow", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid() || fcntl(memory.get(), F_ADD_SEALS, kSegmentSeals) != 0) {
    const int error = errno;
    return ErrnoStatus(error, "make the memory shared with a TensorFlow host");
  }
  MUSTER_ASSIGN_OR_RETURN(std::byte* const base, ReserveAddresses());
  return std::unique_ptr<SharedSegment>(new SharedSegment(std::move(memory), base));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Attach(process::Descriptor memory) {
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::DataLossError("the memory handed over by the owner is no sealed memfd");
  }
  MUSTER_ASSIGN_OR_RETURN(std::byte* const base, ReserveAddresses());
  return std::unique_ptr<SharedSegment>(new SharedSegment(std::move(memory), base));
}

SharedSegment::~SharedSegment() { munmap(base_, kMaxSegmentBytes); }

absl::Status SharedSegment::Map(uint64_t bytes) {
  void* const at = mmap(base_ + bytes_, bytes - bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, memory_.get(), static_cast<off_t>(bytes_));
  if (at == MAP_FAILED) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("map ", bytes, " bytes shared with a TensorFlow host"));
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SharedSegment::Allocate(uint64_t size) {
  const uint64_t offset = used_;
  if (size > kMaxSegmentBytes - kLeastSegmentBytes - offset) {
    return absl::ResourceExhaustedError(
        StrCat("share ", size, " bytes with a TensorFlow host in addition to ", offset,
               ": more than ", kMaxSegmentBytes >> 30, " GiB: use smaller batches"));
  }
  const uint64_t end = offset + RoundUp(std::max<uint64_t>(size, 1), kAlignment);
  if (end > bytes_) {
    const uint64_t wanted = RoundUp(end, kLeastSegmentBytes);
    // The pages are allocated now: otherwise a page that is missing later would kill the process
    // that touches it.
    if (ftruncate(memory_.get(), static_cast<off_t>(wanted)) != 0 ||
        fallocate(memory_.get(), 0, static_cast<off_t>(bytes_),
                  static_cast<off_t>(wanted - bytes_)) != 0) {
      const int error = errno;
      return error == ENOMEM || error == ENOSPC
                 ? absl::ResourceExhaustedError(
                       StrCat("share ", wanted, " bytes with a TensorFlow host: no memory left"))
                 : ErrnoStatus(error, StrCat("share ", wanted, " bytes with a TensorFlow host"));
    }
    MUSTER_RETURN_IF_ERROR(Map(wanted));
  }
  used_ = end;
  return offset;
}

absl::Status SharedSegment::MapTo(uint64_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  struct stat found = {};
  if (bytes > kMaxSegmentBytes || bytes % kLeastSegmentBytes != 0 ||
      fstat(memory_.get(), &found) != 0 || static_cast<uint64_t>(found.st_size) < bytes) {
    return absl::DataLossError(
        StrCat("the owner shares fewer than the ", bytes, " bytes that it announced"));
  }
  return Map(bytes);
}

absl::StatusOr<uint64_t> SharedBlock::Reserve(SharedSegment& segment, uint64_t size) {
  if (size > capacity_) {
    const uint64_t wanted = std::max(size, 2 * capacity_);
    MUSTER_ASSIGN_OR_RETURN(offset_, segment.Allocate(wanted));
    capacity_ = RoundUp(wanted, kAlignment);
  }
  return offset_;
}

}  // namespace muster::engine::tensorflow::host
