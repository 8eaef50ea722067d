#include "muster/net/transport/dial.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "muster/net/transport/address.h"
#include "muster/net/transport/local_address.h"
#include "muster/net/transport/socket_address.h"
#include "muster/net/transport/test_streams.h"

namespace muster::net::transport {
namespace {

using process::Deadline;
using process::Descriptor;
using testing::AllOf;
using testing::HasSubstr;
using Kind = Address::Kind;

TEST(AddressTest, PrintsAsItWasParsed) {
  for (const std::string text : {"tcp://127.0.0.1:80", "tcp://[::1]:8080", "tcp://worker-0.job:1",
                                 "unix:/run/a b", "shm:relative", "shm:@abstract"}) {
    const absl::StatusOr<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(ToString(*address), text);
  }
  EXPECT_EQ(ParseAddress("tcp://[::1]:8080")->host, "::1");
}

TEST(AddressTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) {
    const absl::Status status = ParseAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  };
  EXPECT_THAT(error("127.0.0.1:80"), HasSubstr("tcp://, unix: and shm:"));
  EXPECT_THAT(error("tcp://host"), HasSubstr("no port"));
  EXPECT_THAT(error("tcp://host:"), HasSubstr("'' is no port"));
  EXPECT_THAT(error("tcp://host:65536"), HasSubstr("'65536' is no port"));
  EXPECT_THAT(error("tcp://host:-1"), HasSubstr("'-1' is no port"));
  EXPECT_THAT(error("tcp://::1:80"), HasSubstr("brackets"));
  EXPECT_THAT(error("tcp://tcp://host:80"), HasSubstr("leave tcp:// out; write HOST:PORT"));
  EXPECT_THAT(std::string(ToStd(ParseHostPort("http://h:1").status().message())),
              AllOf(HasSubstr("address 'http://h:1'"), HasSubstr("leave http:// out")));
  EXPECT_EQ(*ParseHostPort("[::1]:80"), Address::Tcp("::1", 80));
  EXPECT_THAT(error("tcp://:80"), HasSubstr("no host"));
  EXPECT_THAT(error("unix:"), HasSubstr("no path"));
  EXPECT_THAT(error("shm:/" + std::string(107, 'x')), HasSubstr("at most 107 bytes"));
}

class DialTest : public testing::Test {
 protected:
  // The peer's first bytes.
  std::string Hear(const Listener& listener) {
    const std::unique_ptr<Stream> stream = AcceptStream(listener, *interrupt_);
    std::string heard(2, '\0');
    size_t have = 0;
    while (have < heard.size()) {
      const auto room = std::as_writable_bytes(std::span(heard)).subspan(have);
      const absl::StatusOr<size_t> n = stream->Read(room);
      if (!n.ok()) return std::string(n.status().message());
      have += *n;
    }
    return heard;
  }
  // Dials when the listener is there, says "hi".
  std::thread DialAndSpeak(const Address& address) {
    return std::thread([this, address] {
      auto stream = Dial(address, {}, TestDeadline(), *interrupt_);
      ASSERT_TRUE(stream.ok()) << stream.status();
      const std::string_view text = "hi";
      const ConstBytes piece = std::as_bytes(std::span(text));
      EXPECT_EQ((*stream)->Write({&piece, 1}).value_or(0), 2u);
    });
  }

  SocketFolder folder_;
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

TEST_F(DialTest, ComesInOverBothKindsOfIp) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Listen(Address::Tcp(host, 0));
    if (!listener.ok() && host == "::1") GTEST_SKIP() << "no IPv6 here: " << listener.status();
    ASSERT_TRUE(listener.ok()) << listener.status();
    std::thread thread = DialAndSpeak((*listener)->address());
    EXPECT_EQ(Hear(**listener), "hi");
    thread.join();
  }
}

// The record of a task's name may come later than the task, and is not needed to listen.
TEST_F(DialTest, AtANameItListensOnAllAddressesAndIsKnownByTheName) {
  const auto listener = Listener::Listen(Address::Tcp("worker-0.job.invalid", 0));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const uint16_t port = (*listener)->address().port;
  EXPECT_NE(port, 0);
  EXPECT_EQ((*listener)->address(), Address::Tcp("worker-0.job.invalid", port));
  EXPECT_EQ((*listener)->near_address(), Address::Tcp("127.0.0.1", port));
  const bool has_v6 = Listener::Listen(Address::Tcp("::1", 0)).ok();
  for (const std::string host : {"127.0.0.1", "::1"}) {
    if (host == "::1" && !has_v6) continue;
    std::thread thread = DialAndSpeak(Address::Tcp(host, port));
    EXPECT_EQ(Hear(**listener), "hi");
    thread.join();
  }
  const absl::Status taken = Listener::Listen((*listener)->address()).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("worker-0.job.invalid"));
}

TEST_F(DialTest, AnIPv4PeerOfASocketForBothIsNamedAsIPv4) {
  const auto listener = Listener::Listen(Address::Tcp("worker-0.job.invalid", 0)).value();
  const auto dialed = Dial(listener->near_address(), {}, TestDeadline(), *interrupt_);
  ASSERT_TRUE(dialed.ok()) << dialed.status();
  const auto accepted = listener->Accept(TestDeadline(), *interrupt_);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_THAT(accepted->peer, testing::StartsWith("tcp://127.0.0.1:"));
}

TEST_F(DialTest, LocalhostIsLoopbackAlone) {
  const auto listener = Listener::Listen(Address::Tcp("localhost", 0));
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ((*listener)->address().host, "localhost");
  std::thread thread = DialAndSpeak((*listener)->near_address());
  EXPECT_EQ(Hear(**listener), "hi");
  thread.join();
  // A socket for all addresses would answer there.
  const Address other = Address::Tcp("127.0.0.2", (*listener)->address().port);
  EXPECT_EQ(Dial(other, {.wait_for_listener = false}, TestDeadline(), *interrupt_).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DialTest, ANameIsLookedUpAnewAtEachAttempt) {
  const auto listener = Listener::Listen(folder_.At(Kind::kTcp)).value();
  // A full backlog: this address answers nothing.
  const Descriptor deaf(socket(AF_INET, SOCK_STREAM, 0));
  SocketAddress moved = ResolveTcp(Address::Tcp("127.0.0.1", 0)).value().front();
  ASSERT_EQ(bind(deaf.get(), moved.get(), moved.size), 0);
  ASSERT_EQ(listen(deaf.get(), 0), 0);
  ASSERT_EQ(getsockname(deaf.get(), moved.get(), &moved.size), 0);
  std::vector<Descriptor> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    std::ignore = connect(waiting.back().get(), moved.get(), moved.size);
  }
  int lookups = 0;
  const auto resolve = [&](const Address& name) -> absl::StatusOr<std::vector<SocketAddress>> {
    EXPECT_EQ(name.host, "worker-0.job.invalid");
    ++lookups;
    if (lookups == 1) return absl::UnavailableError("there is no such name yet");
    if (lookups == 2) return std::vector{moved};
    return ResolveTcp(listener->address());
  };
  const auto stream =
      Dial(Address::Tcp("worker-0.job.invalid", 7), {.resolve = resolve, .connect_seconds = 0.2},
           TestDeadline(), *interrupt_);
  EXPECT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(lookups, 3);
}

TEST_F(DialTest, TriesUntilSomebodyListens) {
  for (const Kind kind : {Kind::kTcp, Kind::kUnix, Kind::kSharedMemory}) {
    Address address = folder_.At(kind);
    // A port that is free, and not held: nobody listens there yet.
    if (kind == Kind::kTcp) address = Listener::Listen(address).value()->address();
    std::thread thread = DialAndSpeak(address);
    const auto listener = Listener::Listen(address).value();
    EXPECT_EQ(Hear(*listener), "hi");
    thread.join();
  }
}

TEST_F(DialTest, OneAttemptFindsWhoListensNowOrNobody) {
  const DialOptions once = {.wait_for_listener = false};
  for (const Kind kind : {Kind::kTcp, Kind::kUnix, Kind::kSharedMemory}) {
    Address address = folder_.At(kind);
    if (kind == Kind::kTcp) address = Listener::Listen(address).value()->address();
    const absl::Status nobody = Dial(address, once, TestDeadline(), *interrupt_).status();
    EXPECT_EQ(nobody.code(), absl::StatusCode::kNotFound) << nobody;
    EXPECT_THAT(std::string(nobody.message()), HasSubstr(ToString(address)));
    const auto listener = Listener::Listen(address).value();
    EXPECT_TRUE(Dial(listener->address(), once, TestDeadline(), *interrupt_).ok());
  }
}

TEST_F(DialTest, AnAbstractNameIsOfOneAndGoesWithIt) {
  const Address address =
      LocalAddress(net::Token::Make().value(), StrCat("test of process ", getpid()));
  auto listener = Listener::Listen(address).value();
  EXPECT_EQ(Listener::Listen(address).status().code(), absl::StatusCode::kAlreadyExists);
  std::thread thread = DialAndSpeak(address);
  EXPECT_EQ(Hear(*listener), "hi");
  thread.join();
  listener.reset();
  EXPECT_TRUE(Listener::Listen(address).ok());
}

TEST_F(DialTest, ALocalAddressIsOfOneKeyAndOneTask) {
  const auto key = net::Token::Make().value();
  EXPECT_EQ(LocalAddress(key, "a"), LocalAddress(key, "a"));
  EXPECT_NE(LocalAddress(key, "a"), LocalAddress(key, "b"));
  EXPECT_NE(LocalAddress(key, "a"), LocalAddress(net::Token::Make().value(), "a"));
  EXPECT_EQ(ParseAddress(ToString(LocalAddress(key, "a"))).value(), LocalAddress(key, "a"));
}

// Another user's process must neither get in nor be handed our memory. Needs root, to become one.
TEST_F(DialTest, AnotherUserIsKeptOutOfAnAbstractName) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can try as another user";
  const Address address = LocalAddress(net::Token::Make().value(), "theirs");
  constexpr uid_t kNobody = 65534;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(kNobody) != 0) _exit(1);
    const auto theirs = Listener::Listen(address).value();
    if (write(ready[1], "r", 1) != 1) _exit(1);
    while (true) pause();
  }
  char any = 0;
  ASSERT_EQ(read(ready[0], &any, 1), 1);
  EXPECT_EQ(Dial(address, {}, TestDeadline(), *interrupt_).status().code(),
            absl::StatusCode::kPermissionDenied);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  const auto ours = Listener::Listen(address).value();
  const pid_t stranger = fork();
  if (stranger == 0) {
    const Descriptor fd(socket(AF_UNIX, SOCK_STREAM, 0));
    const SocketAddress to = UnixAddress(address.path);
    const bool in = setuid(kNobody) == 0 && connect(fd.get(), to.get(), to.size) == 0;
    char end = 0;
    _exit(in && read(fd.get(), &end, 1) <= 0 ? 0 : 1);  // closed unread
  }
  EXPECT_EQ(ours->Accept(Deadline::After(0.2), *interrupt_).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  int status = -1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int fd : ready) close(fd);
}

// What is left of memory is taken before it is offered, not page by page when it is used.
TEST_F(DialTest, MemoryThatIsNotThereIsAnErrorAndNoSignal) {
  const auto listener = Listener::Listen(folder_.At(Kind::kSharedMemory)).value();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {.rlim_cur = 4096, .rlim_max = 4096};  // memory to share is a file too
    setrlimit(RLIMIT_FSIZE, &none);
    const absl::Status status = Dial(listener->address(), {}, TestDeadline(), *interrupt_).status();
    const bool named = ToStd(status.message()).find("of memory to share") != std::string_view::npos;
    _exit(!status.ok() && named ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(DialTest, SaysWhereNobodyListened) {
  const Address address = folder_.At(Kind::kUnix);
  const absl::Status status = Dial(address, {}, Deadline::After(0.02), *interrupt_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(address)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file"));
}

TEST_F(DialTest, AnInterruptEndsIt) {
  std::thread thread([&] { interrupt_->Set(absl::CancelledError("stop")); });
  EXPECT_EQ(Dial(folder_.At(Kind::kUnix), {}, TestDeadline(), *interrupt_).status(),
            absl::CancelledError("stop"));
  thread.join();
}

TEST_F(DialTest, ATaskListensOnTheSocketItInherited) {
  Descriptor tcp(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(tcp.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  const auto listener = Listener::Adopt(std::move(tcp), Kind::kTcp);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_NE((*listener)->address().port, 0);
  std::thread thread = DialAndSpeak((*listener)->address());
  EXPECT_EQ(Hear(**listener), "hi");
  thread.join();

  Descriptor file(open("/dev/null", O_RDONLY));
  EXPECT_FALSE(Listener::Adopt(std::move(file), Kind::kTcp).ok());
  Descriptor datagrams(socket(AF_INET, SOCK_DGRAM, 0));
  EXPECT_EQ(Listener::Adopt(std::move(datagrams), Kind::kTcp).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DialTest, AUnixSocketsFileIsItsOwnersAndReplacesADeadOne) {
  const Address address = folder_.At(Kind::kUnix);
  {  // a file that its process left behind
    const Descriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    const SocketAddress bound = UnixAddress(address.path);
    ASSERT_EQ(bind(dead.get(), bound.get(), bound.size), 0);
  }
  auto listener = Listener::Listen(address);
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat found = {};
  ASSERT_EQ(stat(address.path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_EQ(Listener::Listen(address).status().code(), absl::StatusCode::kAlreadyExists);
  listener->reset();
  EXPECT_NE(stat(address.path.c_str(), &found), 0);

  std::ofstream(address.path) << "precious";
  EXPECT_EQ(Listener::Listen(address).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(address.path));
}

// What a peer hands over as shared memory.
class OfferTest : public testing::Test {
 protected:
  absl::Status Offer(int memory, uint64_t ring_bytes, std::string magic = "MUSTSHM1") {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    const Descriptor here(fds[0]);
    magic.append(reinterpret_cast<const char*>(&ring_bytes), sizeof ring_bytes);
    iovec part = {.iov_base = magic.data(), .iov_len = magic.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (memory >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      *header = {
          .cmsg_len = CMSG_LEN(sizeof memory), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
      std::memcpy(CMSG_DATA(header), &memory, sizeof memory);
    }
    EXPECT_EQ(sendmsg(here.get(), &message, 0), static_cast<ssize_t>(magic.size()));
    const auto interrupt = Interrupt::Create().value();
    return SharedMemoryStream::Accept(Descriptor(fds[1]), "peer", TestDeadline(), *interrupt)
        .status();
  }
  static Descriptor Memory(size_t bytes, int seals) {
    Descriptor memory(memfd_create("test", MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, seals), 0);
    return memory;
  }
};

TEST_F(OfferTest, OnlySealedMemoryOfTheRightSizeIsMapped) {
  constexpr size_t kRing = kMinRingBytes, kWhole = 4096 + 2 * kRing;
  const auto bad = absl::StatusCode::kDataLoss;
  EXPECT_TRUE(Offer(Memory(kWhole, F_SEAL_SHRINK).get(), kRing).ok());
  EXPECT_EQ(Offer(Memory(kWhole, F_SEAL_GROW).get(), kRing).code(), bad);
  EXPECT_EQ(Offer(Memory(kWhole - 1, F_SEAL_SHRINK).get(), kRing).code(), bad);
  EXPECT_EQ(Offer(Memory(kWhole, F_SEAL_SHRINK).get(), kRing - 1).code(), bad);
  EXPECT_EQ(Offer(Memory(kWhole, F_SEAL_SHRINK).get(), uint64_t{1} << 63).code(), bad);
  EXPECT_EQ(Offer(Memory(kWhole, F_SEAL_SHRINK).get(), kRing, "MUSTSHM2").code(), bad);
  EXPECT_EQ(Offer(-1, kRing).code(), bad);
  const Descriptor file(open("/dev/zero", O_RDWR));
  EXPECT_EQ(Offer(file.get(), kRing).code(), bad);
}

}  // namespace
}  // namespace muster::net::transport
