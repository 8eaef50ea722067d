#include "muster/net/transport/shared_memory_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "muster/net/transport/socket_error.h"
#include "muster/net/transport/wait.h"

namespace muster::net::transport {
namespace {

// What goes with the descriptor.
struct Introduction {
  std::array<char, 8> magic = {'M', 'U', 'S', 'T', 'S', 'H', 'M', '1'};
  uint64_t ring_bytes = 0;
};

constexpr size_t kControlBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

size_t MemoryBytes(size_t ring_bytes) { return kControlBytes + 2 * ring_bytes; }

bool GoodRing(size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinRingBytes && bytes <= kMaxRingBytes;
}

union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

msghdr OneDescriptor(iovec* part, Control* control) {
  msghdr message = {};
  message.msg_iov = part;
  message.msg_iovlen = 1;
  message.msg_control = control->bytes.data();
  message.msg_controllen = control->bytes.size();
  return message;
}

absl::Status SendMemory(int socket, int memory, size_t ring_bytes, const std::string& peer) {
  Introduction introduction = {.ring_bytes = ring_bytes};
  iovec part = {.iov_base = &introduction, .iov_len = sizeof introduction};
  Control control = {};
  msghdr message = OneDescriptor(&part, &control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof memory);
  std::memcpy(CMSG_DATA(header), &memory, sizeof memory);
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == sizeof introduction) return absl::OkStatus();
  return PeerGone(sent < 0 ? errno : EPIPE, peer, "hand over shared memory");
}

// Returns the descriptor that came with a complete introduction, or none.
struct Offered {
  Introduction introduction;
  process::Descriptor memory;
};

absl::StatusOr<Offered> ReceiveMemory(int socket, const std::string& peer) {
  Offered offered;
  iovec part = {.iov_base = &offered.introduction, .iov_len = sizeof offered.introduction};
  Control control = {};
  msghdr message = OneDescriptor(&part, &control);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return PeerGone(errno, peer, "receive shared memory");
  if (got == 0) return PeerClosed(peer);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    offered.memory.Reset(fd);
  }
  const Introduction expected = {.ring_bytes = offered.introduction.ring_bytes};
  if (got != sizeof expected || !offered.memory.valid() ||
      offered.introduction.magic != expected.magic || !GoodRing(expected.ring_bytes)) {
    return absl::DataLossError(StrCat(peer, " offers no shared memory of this version"));
  }
  return offered;
}

}  // namespace

class SharedMemoryStream::Memory {
 public:
  static absl::StatusOr<std::unique_ptr<Memory>> Map(int fd, size_t ring_bytes) {
    void* const at = mmap(nullptr, MemoryBytes(ring_bytes), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) return ErrnoStatus(errno, StrCat("map a ring of ", ring_bytes, " bytes"));
    return std::unique_ptr<Memory>(new Memory(static_cast<std::byte*>(at), ring_bytes));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(at_, MemoryBytes(ring_bytes_)); }

  // The dialing side writes to ring 0.
  RingControl* control(int ring) const { return reinterpret_cast<RingControl*>(at_) + ring; }
  std::byte* data(int ring) const { return at_ + kControlBytes + ring * ring_bytes_; }
  size_t ring_bytes() const { return ring_bytes_; }

 private:
  Memory(std::byte* at, size_t ring_bytes) : at_(at), ring_bytes_(ring_bytes) {}
  std::byte* const at_;
  const size_t ring_bytes_;
};

absl::StatusOr<std::unique_ptr<SharedMemoryStream>> SharedMemoryStream::Offer(
    process::Descriptor socket, std::string peer, const SharedMemoryOptions& options,
    process::Deadline deadline, const Interrupt& interrupt) {
  if (!GoodRing(options.ring_bytes)) {
    return absl::InvalidArgumentError(StrCat("a ring of ", options.ring_bytes,
                                             " bytes: must be a power of two from ", kMinRingBytes,
                                             " to ", kMaxRingBytes));
  }
  MUSTER_RETURN_IF_ERROR(MakeNonBlocking(socket.get(), peer));
  const size_t bytes = MemoryBytes(options.ring_bytes);
  const process::Descriptor memory(memfd_create("muster-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // The pages are allocated now: a page that is missing later would end the process that touches
  // it.
  if (!memory.valid() || ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      fallocate(memory.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return ErrnoStatus(errno, StrCat("make ", bytes, " bytes of memory to share with ", peer));
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Memory> mapped,
                          Memory::Map(memory.get(), options.ring_bytes));
  MUSTER_RETURN_IF_ERROR(WaitForDescriptor(socket.get(), POLLOUT, deadline, interrupt));
  MUSTER_RETURN_IF_ERROR(SendMemory(socket.get(), memory.get(), options.ring_bytes, peer));
  return std::unique_ptr<SharedMemoryStream>(
      new SharedMemoryStream(std::move(socket), std::move(peer), std::move(mapped), 0));
}

absl::StatusOr<std::unique_ptr<SharedMemoryStream>> SharedMemoryStream::Accept(
    process::Descriptor socket, std::string peer, process::Deadline deadline,
    const Interrupt& interrupt) {
  MUSTER_RETURN_IF_ERROR(MakeNonBlocking(socket.get(), peer));
  MUSTER_RETURN_IF_ERROR(WaitForDescriptor(socket.get(), POLLIN, deadline, interrupt));
  MUSTER_ASSIGN_OR_RETURN(const Offered offered, ReceiveMemory(socket.get(), peer));
  const size_t ring_bytes = offered.introduction.ring_bytes;
  struct stat found = {};
  const int seals = fcntl(offered.memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(offered.memory.get(), &found) != 0 ||
      static_cast<size_t>(found.st_size) != MemoryBytes(ring_bytes)) {
    return absl::DataLossError(StrCat(peer, " offers memory that is not sealed, or not of ",
                                      MemoryBytes(ring_bytes), " bytes"));
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Memory> mapped,
                          Memory::Map(offered.memory.get(), ring_bytes));
  return std::unique_ptr<SharedMemoryStream>(
      new SharedMemoryStream(std::move(socket), std::move(peer), std::move(mapped), 1));
}

SharedMemoryStream::SharedMemoryStream(process::Descriptor socket, std::string peer,
                                       std::unique_ptr<Memory> memory, int side)
    : Stream(std::move(peer)),
      socket_(std::move(socket)),
      memory_(std::move(memory)),
      writer_(memory_->control(side), memory_->data(side), memory_->ring_bytes()),
      reader_(memory_->control(1 - side), memory_->data(1 - side), memory_->ring_bytes()) {}

SharedMemoryStream::~SharedMemoryStream() = default;

absl::Status SharedMemoryStream::Gone() const {
  if (socket_.valid()) return PeerClosed(peer());
  return absl::UnavailableError(StrCat("the connection to ", peer(), " was closed here"));
}

void SharedMemoryStream::RingBell() {
  bell_ = false;
  const char any = 0;
  // A socket that is full of bells will wake the sleeper even without this one.
  const ssize_t rung = send(socket_.get(), &any, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (rung < 0 && errno != EAGAIN && errno != EINTR) gone_ = true;
}

absl::StatusOr<size_t> SharedMemoryStream::Write(std::span<const ConstBytes> pieces) {
  if (gone_ || !socket_.valid()) return Gone();
  absl::StatusOr<size_t> written = writer_.Write(pieces, &bell_);
  if (bell_) RingBell();
  if (!written.ok()) return Annotate(written.status(), peer());
  return written;
}

absl::StatusOr<ConstBytes> SharedMemoryStream::Peek() {
  if (!socket_.valid()) return Gone();
  absl::StatusOr<ConstBytes> there = reader_.Peek();
  if (!there.ok()) return Annotate(there.status(), peer());
  // The peer wrote everything before the socket hung up, and the ring was read after that.
  if (gone_ && there->size() <= shown_) return Gone();
  shown_ = there->size();
  return there;
}

void SharedMemoryStream::Consume(size_t n) {
  shown_ = 0;
  reader_.Consume(n, &bell_);
  if (bell_) RingBell();
}

PollWish SharedMemoryStream::Arm(bool read, bool write) {
  PollWish wish = {.fd = socket_.get(), .events = POLLIN};
  if (read && reader_.Arm(&bell_)) wish.events = 0;
  if (write && writer_.Arm()) wish.events = 0;
  if (bell_) RingBell();
  if (gone_ || !socket_.valid()) wish.events = 0;
  slept_ = wish.events != 0;
  return wish;
}

void SharedMemoryStream::Disarm() {
  reader_.Disarm();
  writer_.Disarm();
  if (!std::exchange(slept_, false)) return;
  std::array<char, 256> bells;
  ssize_t got = 0;
  do {
    got = recv(socket_.get(), bells.data(), bells.size(), MSG_DONTWAIT);
  } while (got == static_cast<ssize_t>(bells.size()) || (got < 0 && errno == EINTR));
  if (got == 0 || (got < 0 && errno != EAGAIN)) gone_ = true;
}

void SharedMemoryStream::Close() { socket_.Reset(); }

}  // namespace muster::net::transport
