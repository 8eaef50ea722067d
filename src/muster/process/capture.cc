#include "muster/process/capture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "muster/process/deadline.h"

namespace muster::process {
namespace {

// Appends the bytes that are available, up to max_bytes in all. Returns false at the end.
bool ReadSome(int fd, size_t max_bytes, std::string* output) {
  char buffer[4096];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  output->append(buffer, std::min(static_cast<size_t>(got), max_bytes - output->size()));
  return got > 0;
}

}  // namespace

absl::StatusOr<CapturedRun> RunCaptured(ProcessTree* tree, ChildSpec spec, double timeout_seconds,
                                        size_t max_bytes, Captured captured) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    return ErrnoStatus(error, "make a pipe for the output of a helper program");
  }
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  spec.stdout_fd = writer.get();
  if (captured == Captured::kStdoutAndStderr) spec.stderr_fd = writer.get();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Child> child,
                          tree == nullptr ? Child::Start(spec) : tree->Start(spec));
  writer.Reset();
  CapturedRun run;
  const Deadline deadline = Deadline::After(timeout_seconds);
  const int fd = reader.get();
  bool open = true;
  while (open && !deadline.expired()) {
    if (PollReadable(&fd, 1, deadline)) open = ReadSome(fd, max_bytes, &run.output);
  }
  auto exit = child->Wait(deadline.PollMillis() / 1e3);
  if (absl::IsDeadlineExceeded(exit.status())) {
    run.timed_out = true;
    MUSTER_RETURN_IF_ERROR(child->SignalGroup(SIGKILL));
    constexpr double kAfterKillSeconds = 10;
    exit = child->Wait(kAfterKillSeconds);
  }
  MUSTER_RETURN_IF_ERROR(exit.status());
  run.exit = *exit;
  return run;
}

}  // namespace muster::process
