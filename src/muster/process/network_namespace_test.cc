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

Descriptor Listen(uint16_t* port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), any, size) != 0 || listen(socket.get(), 1) != 0) return Descriptor();
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
  uint16_t outside = 0;
  const Descriptor listener = Listen(&outside);
  ASSERT_TRUE(listener.valid());
  int words[2], end[2];
  ASSERT_EQ(pipe(words), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t isolated = Fork([&] {
    close(end[1]);
    const uid_t user = geteuid();
    if (IsNetworkIsolated() || !IsolateNetwork().ok()) return kNotAllowed;
    uint16_t inside = 0;
    const Descriptor own = Listen(&inside);
    const bool right = IsNetworkIsolated() && geteuid() == user && own.valid() && Reaches(inside) &&
                       !Reaches(outside);
    (void)!write(words[1], &inside, sizeof inside);
    char byte;
    (void)!read(end[0], &byte, 1);
    return right ? 0 : 1;
  });
  close(words[1]);
  close(end[0]);
  uint16_t inside = 0;
  if (read(words[0], &inside, sizeof inside) == sizeof inside) {
    EXPECT_FALSE(Reaches(inside));
    const int joined = Await(Fork([&] {
      if (!JoinNetwork(isolated).ok()) return 2;
      return Reaches(inside) && !Reaches(outside) ? 0 : 3;
    }));
    EXPECT_EQ(joined, 0);
  }
  close(end[1]);
  close(words[0]);
  const int code = Await(isolated);
  if (code == kNotAllowed) GTEST_SKIP() << "this kernel lets nobody make a network namespace";
  EXPECT_EQ(code, 0);
  EXPECT_NE(inside, outside);
}

}  // namespace
}  // namespace muster::process
