// muster-tensorflow: the process in which muster runs TensorFlow. It has no state that its owner
// does not have too. muster starts it with a socket, the shared memory and two eventfds as its
// descriptors 3 to 6.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "muster/engine/tensorflow/host/server.h"

namespace muster::engine::tensorflow::host {
namespace {

// Ends the process when its owner ends, even in the middle of a computation.
void EndWithOwner() {
  pollfd socket = {.fd = kSocketFd, .events = 0, .revents = 0};
  while (poll(&socket, 1, -1) <= 0 || (socket.revents & (POLLHUP | POLLERR)) == 0) {
  }
  _exit(0);
}

int RunHost() {
  struct stat info = {};
  if (fstat(kSocketFd, &info) != 0 || !S_ISSOCK(info.st_mode) || fstat(kMemoryFd, &info) != 0 ||
      fstat(kRequestEventFd, &info) != 0 || fstat(kAnswerEventFd, &info) != 0) {
    std::fputs(
        "muster-tensorflow is started by muster, to run the functions of an exported Keras "
        "model.\n",
        stderr);
    return 2;
  }
  auto segment = SharedSegment::Attach(process::Descriptor(kMemoryFd));
  absl::Status status = segment.status();
  if (status.ok()) {
    Server server(process::Descriptor(kRequestEventFd), process::Descriptor(kAnswerEventFd),
                  *std::move(segment));
    std::thread watcher(EndWithOwner);
    status = server.Serve();
    if (!status.ok()) {
      std::fprintf(stderr, "muster-tensorflow: %s\n", std::string(status.message()).c_str());
    }
    std::fflush(stderr);
    // Exits without running the destructors of TensorFlow's globals and of the watcher, which is
    // still waiting.
    _exit(status.ok() ? 0 : 1);
  }
  std::fprintf(stderr, "muster-tensorflow: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace muster::engine::tensorflow::host

int main() { return muster::engine::tensorflow::host::RunHost(); }
