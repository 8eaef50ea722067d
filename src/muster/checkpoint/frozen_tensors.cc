#include "muster/checkpoint/frozen_tensors.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <vector>

namespace muster::checkpoint {
namespace {

constexpr int kPipeBytes = 1 << 20;  // the most that Linux gives to everybody

class CopiedTensors : public FrozenTensors {
 public:
  // Null when there is no memory.
  static std::unique_ptr<FrozenTensors> Create(std::span<const Tensor> tensors, uint64_t bytes) {
    std::unique_ptr<char[]> memory(new (std::nothrow) char[bytes]);
    if (!memory) return nullptr;
    char* end = memory.get();
    for (const Tensor& tensor : tensors) {
      if (!tensor.bytes.empty()) std::memcpy(end, tensor.bytes.data(), tensor.bytes.size());
      end += tensor.bytes.size();
    }
    return std::unique_ptr<FrozenTensors>(new CopiedTensors(std::move(memory), bytes));
  }

  absl::Status Read(std::span<char> piece) override {
    if (piece.size() > left_) return absl::InternalError("read beyond the copied tensors");
    std::memcpy(piece.data(), next_, piece.size());
    next_ += piece.size();
    left_ -= piece.size();
    return absl::OkStatus();
  }

 private:
  CopiedTensors(std::unique_ptr<char[]> memory, uint64_t bytes)
      : memory_(std::move(memory)), next_(memory_.get()), left_(bytes) {}

  const std::unique_ptr<char[]> memory_;
  const char* next_;
  uint64_t left_;
};

// The child's whole life. Other threads of the parent may have held any lock when it was made:
// nothing here may take one, so system calls only.
[[noreturn]] void SendAndExit(std::span<const Tensor> tensors, int from, int to) {
  setpgid(0, 0);
  close(from);
  for (const Tensor& tensor : tensors) {
    const char* next = tensor.bytes.data();
    for (size_t left = tensor.bytes.size(); left > 0;) {
      const ssize_t sent = write(to, next, left);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) _exit(1);
      next += sent;
      left -= static_cast<size_t>(sent);
    }
  }
  _exit(0);
}

class ForkedTensors : public FrozenTensors {
 public:
  // Null when no child can be made.
  static std::unique_ptr<FrozenTensors> Create(std::span<const Tensor> tensors) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
    fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // smaller is slower
    const pid_t child = fork();
    if (child == 0) SendAndExit(tensors, ends[0], ends[1]);
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      return nullptr;
    }
    return std::unique_ptr<FrozenTensors>(new ForkedTensors(child, ends[0]));
  }

  // Without a reader the child's next write ends it.
  ~ForkedTensors() override {
    close(from_);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  absl::Status Read(std::span<char> piece) override {
    while (!piece.empty()) {
      const ssize_t got = read(from_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        const int error = errno;
        return ErrnoStatus(error, "reading the frozen tensors");
      }
      if (got == 0) {
        return absl::ResourceExhaustedError(
            "the process that holds the frozen tensors was killed (out of memory?)");
      }
      piece = piece.subspan(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

 private:
  ForkedTensors(pid_t child, int from) : child_(child), from_(from) {}

  const pid_t child_;
  const int from_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FrozenTensors>> FrozenTensors::Create(
    std::span<const Tensor> tensors, uint64_t copied_bytes) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes.size();
  std::unique_ptr<FrozenTensors> frozen;
  if (bytes > copied_bytes) frozen = ForkedTensors::Create(tensors);
  if (!frozen) frozen = CopiedTensors::Create(tensors, bytes);
  if (frozen) return frozen;
  return absl::ResourceExhaustedError(
      StrCat("no memory to save ", bytes, " bytes while the training goes on"));
}

}  // namespace muster::checkpoint
