#include "muster/net/transport/link_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "muster/net/transport/channel.h"
#include "muster/net/transport/socket_stream.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using process::Descriptor;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kStallSeconds = kMinStallSeconds;
constexpr auto kLonger = std::chrono::milliseconds(kStallSeconds * 1000 + 1500);

// Two ends of a TCP connection over loopback.
struct Ends {
  Descriptor near, far;
  uint16_t near_port = 0, far_port = 0;
};

uint16_t GetPort(int fd) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

Ends Connect() {
  const Descriptor listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const to = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listening.get(), to, sizeof address), 0);
  EXPECT_EQ(listen(listening.get(), 1), 0);
  address.sin_port = htons(GetPort(listening.get()));
  Ends ends;
  ends.near.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(ends.near.get(), to, sizeof address), 0);
  ends.far.Reset(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ends.near_port = GetPort(ends.near.get());
  ends.far_port = GetPort(ends.far.get());
  return ends;
}

// Nothing that comes for it reaches it any more, nor is it answered: as on a machine that is gone.
void Vanish(int fd) {
  sock_filter nothing = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program = {.len = 1, .filter = &nothing};
  ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

class LinkWatchTest : public testing::Test {
 protected:
  std::unique_ptr<Channel> Wrap(Descriptor socket) {
    return std::make_unique<Channel>(
        SocketStream::Create(std::move(socket), "tcp://peer", {.stall_seconds = kStallSeconds})
            .value(),
        ChannelOptions{.peer = "worker-1"});
  }
  void ExpectBroken(const absl::Status& status, const Ends& ends) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(ToStd(status.message()),
                AllOf(HasSubstr("worker-1"), HasSubstr("neither data nor keep-alives"),
                      HasSubstr(StrCat("127.0.0.1:", ends.near_port)),
                      HasSubstr(StrCat("127.0.0.1:", ends.far_port))));
  }

  std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

TEST_F(LinkWatchTest, WhoWaitsForAMachineThatIsGoneIsToldWhoItWas) {
  Ends ends = Connect();
  const auto channel = Wrap(std::move(ends.near));
  Vanish(ends.far.get());
  ExpectBroken(channel->Receive(Deadline::After(60), *interrupt_).status(), ends);
}

TEST_F(LinkWatchTest, SoIsWhoHasSentSomethingToIt) {
  Ends ends = Connect();
  const auto channel = Wrap(std::move(ends.near));
  Vanish(ends.far.get());
  const std::vector<std::byte> bytes(100);
  ASSERT_TRUE(channel->Send(1, bytes, Deadline::After(60), *interrupt_).ok());
  ExpectBroken(channel->Receive(Deadline::After(60), *interrupt_).status(), ends);
}

// Who computes, reads or saves neither writes nor reads meanwhile; its system still answers.
TEST_F(LinkWatchTest, WhoIsBusyIsNotGone) {
  Ends ends = Connect();
  const auto near = Wrap(std::move(ends.near)), far = Wrap(std::move(ends.far));
  const std::vector<std::byte> more_than_the_system_holds(size_t{64} << 20);
  std::jthread busy([&] {
    std::this_thread::sleep_for(kLonger);
    const auto got = far->Receive(Deadline::After(60), *interrupt_);
    ASSERT_TRUE(got.ok()) << got.status();
    std::this_thread::sleep_for(kLonger);
    EXPECT_TRUE(far->Send(2, {}, Deadline::After(60), *interrupt_).ok());
  });
  const absl::Status sent =
      near->Send(1, more_than_the_system_holds, Deadline::After(60), *interrupt_);
  EXPECT_TRUE(sent.ok()) << sent;
  const auto answer = near->Receive(Deadline::After(60), *interrupt_);
  EXPECT_TRUE(answer.ok()) << answer.status();
}

}  // namespace
}  // namespace muster::net::transport
