#include "muster/process/network_namespace.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "muster/process/descriptor.h"
#include "muster/process/test_program.h"

namespace muster::process {
namespace {

constexpr int kNotAllowed = 77;  // of a child: this kernel lets nobody

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Takes that port, or any free one for 0, so that nobody else listens there or connects from there.
Descriptor Bind(uint16_t* port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(*port);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), any, size) != 0) return Descriptor();
  getsockname(socket.get(), any, &size);
  *port = ntohs(address.sin_port);
  return socket;
}

bool Reaches(uint16_t port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// In a process of its own, since a network is for the whole of one. Its exit code is `run`'s.
template <class F>
pid_t Fork(F run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  return child;
}

int Await(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NetworkNamespaceTest, NobodyReachesWhatListensInAnother) {
  uint16_t outside = 0, inside = 0;
  const Descriptor listener = Bind(&outside);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const Descriptor unused = Bind(&inside);
  ASSERT_TRUE(unused.valid());
  int ready[2], end[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t isolated = Fork([&] {
    close(end[1]);
    const uid_t user = geteuid();
    if (IsNetworkIsolated() || !IsolateNetwork().ok()) return kNotAllowed;
    const Descriptor own = Bind(&inside), not_heard = Bind(&outside);
    if (!own.valid() || listen(own.get(), 2) != 0 || !not_heard.valid()) return 1;
    if (!IsNetworkIsolated() || geteuid() != user) return 2;
    if (!Reaches(inside)) return 3;
    if (Reaches(outside)) return 4;
    char byte = 0;
    (void)!write(ready[1], &byte, 1);
    (void)!read(end[0], &byte, 1);
    return 0;
  });
  close(ready[1]);
  close(end[0]);
  char byte;
  if (read(ready[0], &byte, 1) == 1) {
    EXPECT_FALSE(Reaches(inside));
    const int joined = Await(Fork([&] {
      if (!JoinNetwork(isolated).ok()) return 2;
      if (!Reaches(inside)) return 3;
      return Reaches(outside) ? 4 : 0;
    }));
    EXPECT_EQ(joined, 0);
  }
  close(end[1]);
  close(ready[0]);
  const int code = Await(isolated);
  if (code == kNotAllowed) GTEST_SKIP() << "this kernel lets nobody make a network namespace";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace muster::process
