// What the tests of this layer share: connected streams of every kind.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "muster/net/transport/dial.h"
#include "muster/net/transport/interrupt.h"
#include "muster/net/transport/listener.h"

namespace muster::net::transport {

// What is waited for happens in milliseconds, or a bug holds it up.
inline process::Deadline TestDeadline() { return process::Deadline::After(60); }

// A folder for sockets, gone afterwards.
class SocketFolder {
 public:
  SocketFolder() {
    std::string path = testing::TempDir() + "/mt_XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  Address At(Address::Kind kind, const std::string& name = "s") const {
    if (kind == Address::Kind::kTcp) return Address::Tcp("127.0.0.1", 0);
    return {.kind = kind, .path = path_ + "/" + name};
  }

 private:
  std::string path_;
};

struct StreamPair {
  std::unique_ptr<Stream> dialed, accepted;
};

inline std::unique_ptr<Stream> AcceptStream(const Listener& listener, const Interrupt& interrupt) {
  absl::StatusOr<Accepted> accepted = listener.Accept(TestDeadline(), interrupt);
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      listener.Open(*std::move(accepted), TestDeadline(), interrupt);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return *std::move(stream);
}

inline StreamPair Connect(const Listener& listener, const Interrupt& interrupt,
                          const DialOptions& options = {}) {
  StreamPair pair;
  auto dialed = std::async(std::launch::async, [&] {
    return Dial(listener.address(), options, TestDeadline(), interrupt);
  });
  pair.accepted = AcceptStream(listener, interrupt);
  absl::StatusOr<std::unique_ptr<Stream>> stream = dialed.get();
  EXPECT_TRUE(stream.ok()) << stream.status();
  pair.dialed = *std::move(stream);
  return pair;
}

}  // namespace muster::net::transport
