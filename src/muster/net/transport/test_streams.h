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
#include "muster/net/transport/protect.h"

namespace muster::net::transport {

// Everything that a test waits for happens within milliseconds, unless a bug prevents it.
inline process::Deadline TestDeadline() { return process::Deadline::After(60); }

// A folder for sockets, removed by the destructor.
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

// TLS for all connections, also for those within a machine.
inline Protection Everywhere(std::shared_ptr<const Tls> tls) {
  return {.tls = std::move(tls), .within_machine = true};
}

// The certificates of a task in a job whose machines are 127.0.0.1.
inline std::shared_ptr<const Tls> MakeTls(const Credentials& authority,
                                          const TlsOptions& options = {}) {
  const auto server =
      MakeCertificate(authority, {.name = "job", .hosts = {"127.0.0.1", "localhost"}}).value();
  const auto client =
      MakeCertificate(authority, {.name = "job", .use = CertificateUse::kClient}).value();
  return Tls::Create(authority.certificate, server, client, options).value();
}

inline std::unique_ptr<Stream> AcceptStream(const Listener& listener, const Interrupt& interrupt,
                                            const Protection& protection = {}) {
  absl::StatusOr<Accepted> accepted = listener.Accept(TestDeadline(), interrupt);
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  absl::StatusOr<std::unique_ptr<Stream>> stream =
      listener.Open(*std::move(accepted), TestDeadline(), interrupt);
  if (stream.ok() && listener.address().kind == Address::Kind::kTcp && protection.within_machine) {
    stream = ProtectAccepted(*std::move(stream), protection, TestDeadline(), interrupt);
  }
  EXPECT_TRUE(stream.ok()) << stream.status();
  return *std::move(stream);
}

inline StreamPair Connect(const Listener& listener, const Interrupt& interrupt,
                          const DialOptions& options = {}) {
  StreamPair pair;
  auto dialed = std::async(std::launch::async, [&] {
    return Dial(listener.address(), options, TestDeadline(), interrupt);
  });
  pair.accepted = AcceptStream(listener, interrupt, options.protection);
  absl::StatusOr<std::unique_ptr<Stream>> stream = dialed.get();
  EXPECT_TRUE(stream.ok()) << stream.status();
  pair.dialed = *std::move(stream);
  return pair;
}

}  // namespace muster::net::transport
