#include "muster/process/ports.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "muster/process/port_lock.h"
#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Ranges = std::vector<PortRange>;

TEST(PortsTest, ChoosesOutsideTheEphemeralRange) {
  EXPECT_EQ(ChooseFrom("32768\t60999\n", "\n"), (Ranges{{10000, 32767}, {61000, 65535}}));
  EXPECT_EQ(ChooseFrom("32768\t60999\n", "10000,20000-20002,65535\n"),
            (Ranges{{10001, 19999}, {20003, 32767}, {61000, 65534}}));
  EXPECT_EQ(ChooseFrom("", ""), (Ranges{{10000, 65535}}));
  EXPECT_EQ(ChooseFrom("1024 65535", "8080"), (Ranges{{10000, 65535}})) << "nothing else is left";
  EXPECT_EQ(ChooseFrom("no numbers", "x,7-y,-3,99999-1"), (Ranges{{10000, 65535}}));
}

// Says "bound" once it listens, or the errno.
std::string Server(int port, bool reuse, const std::string& address) {
  return StrCat("import socket, sys, time\n", "s = socket.socket()\n",
                reuse ? "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n" : "",
                "try:\n  s.bind(('", address, "', ", port,
                "))\n  s.listen()\n  print('bound', flush=True)\n  sys.stdin.read()\n",
                "except OSError as e:\n  print(e.errno, flush=True)\n");
}

struct Running {
  std::unique_ptr<Child> child;
  TestPipe in, out;
  std::string said;
};

std::unique_ptr<Running> Serve(int port, bool reuse, const std::string& address = "127.0.0.1") {
  auto running = std::make_unique<Running>();
  ChildSpec spec = {.argv = {"python3", "-S", "-c", Server(port, reuse, address)},
                    .environment = CurrentEnvironment(),
                    .stdin_fd = running->in.reading.get(),
                    .stdout_fd = running->out.writing.get()};
  auto child = Child::Start(spec);
  EXPECT_TRUE(child.ok()) << child.status();
  running->child = *std::move(child);
  running->said = running->out.ReadLine();
  return running;
}

class HeldPortTest : public testing::Test {
 protected:
  PortOptions Options(const std::string& address = "") const {
    return {.folder = folder_.path(), .address = address};
  }
  TestFolder folder_;
};

TEST_F(HeldPortTest, PortsOfOneMachineDiffer) {
  std::vector<HeldPort> held;
  std::set<int> ports;
  for (int i = 0; i < 20; ++i) {
    auto port = HeldPort::Any(Options());
    ASSERT_TRUE(port.ok()) << port.status();
    ports.insert(port->port());
    held.push_back(*std::move(port));
  }
  EXPECT_EQ(ports.size(), 20U);
  EXPECT_GE(*ports.begin(), 10000);
  held.clear();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "lock files are left";
}

TEST_F(HeldPortTest, AServerWithReuseAddressListensBesideTheHolder) {
  for (const char* held_address : {"", "127.0.0.1", "0.0.0.0"}) {
    auto port = HeldPort::Any(Options(held_address));
    ASSERT_TRUE(port.ok()) << port.status();
    EXPECT_EQ(Serve(port->port(), true, "127.0.0.1")->said, "bound") << held_address;
    EXPECT_EQ(Serve(port->port(), true, "0.0.0.0")->said, "bound") << held_address;
  }
}

TEST_F(HeldPortTest, AServerWithoutReuseAddressWantsThePortReleased) {
  auto port = HeldPort::Any(Options());
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_EQ(Serve(port->port(), false)->said, std::to_string(EADDRINUSE)) << "nothing held it";
  port->ReleaseSocket();
  EXPECT_EQ(port->socket_fd(), -1);
  {
    const auto server = Serve(port->port(), false);
    EXPECT_EQ(server->said, "bound");
    const absl::Status status = port->HoldSocket();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(StrCat("process ", server->child->pid(), " (")),
                                        HasSubstr("python3 -S -c")));
  }
  EXPECT_TRUE(port->HoldSocket().ok());
  EXPECT_TRUE(port->HoldSocket().ok()) << "held already";
}

TEST_F(HeldPortTest, ATaskInheritsTheSocketAndListens) {
  auto port = HeldPort::Any(Options("127.0.0.1"));
  ASSERT_TRUE(port.ok()) << port.status();
  TestPipe out;
  ChildSpec spec = {.argv = {"python3", "-S", "-c",
                             "import socket\ns = socket.socket(fileno=7)\ns.listen()\n"
                             "print(*s.getsockname())"},
                    .environment = CurrentEnvironment(),
                    .stdout_fd = out.writing.get(),
                    .inherited = {{.from = port->socket_fd(), .to = 7}}};
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(out.ReadLine(), StrCat("127.0.0.1 ", port->port()));
}

TEST_F(HeldPortTest, AFixedPortThatIsTakenNamesWhoHasIt) {
  int number = 0;
  {
    auto port = HeldPort::Any(Options());
    ASSERT_TRUE(port.ok()) << port.status();
    number = port->port();
    const auto again = HeldPort::Fixed(number, Options());
    EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(again.status().message(), AllOf(HasSubstr(StrCat("port ", number, " is taken")),
                                                HasSubstr(StrCat("process ", getpid()))));
  }
  const auto server = Serve(number, true);
  ASSERT_EQ(server->said, "bound");
  const auto fixed = HeldPort::Fixed(number, Options());
  EXPECT_EQ(fixed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(fixed.status().message(), HasSubstr(StrCat("process ", server->child->pid())));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "the lock outlived the error";
}

TEST_F(HeldPortTest, TheSamePortComesBackAfterItsServerWasKilled) {
  auto port = HeldPort::Any(Options());
  ASSERT_TRUE(port.ok()) << port.status();
  for (int i = 0; i < 2; ++i) {
    const auto server = Serve(port->port(), true);
    EXPECT_EQ(server->said, "bound");
    // A connection that the server's end leaves in TIME_WAIT.
    const Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_TRUE(server->child->Signal(SIGKILL).ok());
    ASSERT_TRUE(server->child->Wait(kTestSeconds).ok());
  }
}

TEST_F(HeldPortTest, WhatOthersPutIntoTheFolderDoesNoHarm) {
  auto first = HeldPort::Any(Options());
  ASSERT_TRUE(first.ok()) << first.status();
  const int port = first->port();
  const std::string path = PortLockPath(folder_.path(), port);
  { const HeldPort released = *std::move(first); }
  const auto fixed_works = [&](const char* what) {
    const auto held = HeldPort::Fixed(port, Options());
    EXPECT_TRUE(held.ok()) << what << ": " << held.status();
  };
  // A fifo, a link to nowhere, a folder: not to be waited for, followed or removed.
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  fixed_works("fifo");
  EXPECT_EQ(LockPort(folder_.path(), port)->state, LockState::kUnknown);
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/nowhere/file", path);
  fixed_works("link");
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  fixed_works("folder");
  std::filesystem::remove(path);
  // What a killed job leaves: a file that nobody has locked.
  folder_.Write(std::filesystem::path(path).filename(), "123456789\n");
  fixed_works("left over");
}

TEST_F(HeldPortTest, AReadOnlyFileOfAnotherUserCanBeLocked) {
  const std::string path = PortLockPath(folder_.path(), 20000);
  folder_.Write(std::filesystem::path(path).filename(), "1\n");
  const Descriptor theirs(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(theirs.get(), LOCK_EX), 0);
  EXPECT_EQ(LockPort(folder_.path(), 20000)->state, LockState::kTaken);
}

TEST_F(HeldPortTest, TheLockEndsWithAKilledHolder) {
  const std::string path = PortLockPath(folder_.path(), 20001);
  TestPipe out;
  ChildSpec spec = Shell(StrCat("exec 9>", path, "; flock 9; echo locked; sleep 1000 & wait"));
  spec.stdout_fd = out.writing.get();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_EQ(out.ReadLine(), "locked");
  EXPECT_EQ(LockPort(folder_.path(), 20001)->state, LockState::kTaken);
  child->reset();
  EXPECT_TRUE(Eventually([&] {
    auto lock = LockPort(folder_.path(), 20001);
    return lock.ok() && lock->state == LockState::kLocked;
  }));
}

TEST_F(HeldPortTest, ErrorsSayWhatToDo) {
  EXPECT_EQ(HeldPort::Fixed(0, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HeldPort::Fixed(65536, Options()).status().code(), absl::StatusCode::kInvalidArgument);
  const auto named = HeldPort::Any(Options("localhost"));
  EXPECT_EQ(named.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(named.status().message(), HasSubstr("'localhost'"));
  const std::string file = folder_.Write("file", "");
  const auto held = HeldPort::Any({.folder = file});
  EXPECT_FALSE(held.ok());
  EXPECT_THAT(held.status().message(), HasSubstr(file));
}

TEST_F(HeldPortTest, TheDefaultFolderIsSharedOrOwn) {
  const auto folder = DefaultLockFolder();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(std::filesystem::is_directory(*folder));
}

}  // namespace
}  // namespace muster::process
