#include "muster/net/transport/tls_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "muster/net/transport/channel.h"
#include "muster/net/transport/socket_stream.h"
#include "muster/net/transport/test_certificates.h"
#include "muster/net/transport/test_streams.h"
#include "muster/net/transport/tls_stream.h"

namespace muster::net::transport {
namespace {

class TlsSessionsTest : public testing::Test {
 protected:
  struct Pair {
    absl::Status status = {};  // of both sides
    bool is_resumed = false;
    std::string binding = {};
  };

  // Connects, and sends a message each way.
  Pair Connect(const std::shared_ptr<const Tls>& dialing,
               const std::shared_ptr<const Tls>& accepting, const std::string& port = "far:1",
               const std::string& host = "127.0.0.1") {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    auto near = SocketStream::Create(process::Descriptor(fds[0]), port).value();
    auto far = SocketStream::Create(process::Descriptor(fds[1]), "near").value();
    auto accepts = std::async(std::launch::async, [&, inner = std::move(far)]() mutable {
      return TlsStream::Accepted(std::move(inner), accepting, TestDeadline(), *interrupt_);
    });
    auto dialed = TlsStream::Dialed(std::move(near), dialing, host, TestDeadline(), *interrupt_);
    auto accepted = accepts.get();
    if (!dialed.ok() || !accepted.ok()) {
      return {.status = dialed.ok() ? accepted.status() : dialed.status()};
    }
    auto& from = static_cast<TlsStream&>(**dialed);
    auto& to = static_cast<TlsStream&>(**accepted);
    EXPECT_EQ(from.is_resumed(), to.is_resumed());
    EXPECT_EQ(from.binding(), to.binding());
    const Pair pair = {.is_resumed = from.is_resumed(), .binding = from.binding()};
    Channel one(*std::move(dialed)), other(*std::move(accepted));
    for (Channel* const sender : {&one, &other}) {
      const std::string text(100'000, 'x');
      std::thread sends([&] {
        EXPECT_TRUE(
            sender->Send(1, std::as_bytes(std::span(text)), TestDeadline(), *interrupt_).ok());
      });
      Channel& receiver = sender == &one ? other : one;
      const auto message = receiver.Receive(TestDeadline(), *interrupt_);
      sends.join();
      EXPECT_TRUE(message.ok()) << message.status();
      EXPECT_EQ(message.ok() ? message->bytes().size() : 0, text.size());
    }
    return pair;
  }

  const Credentials authority_ = MakeAuthority("job-a", 10).value();
  const std::shared_ptr<const Tls> near_ = MakeTls(authority_), far_ = MakeTls(authority_);
  const std::unique_ptr<Interrupt> interrupt_ = Interrupt::Create().value();
};

TEST_F(TlsSessionsTest, EachLaterConnectionResumesTheSessionOfTheOneBefore) {
  std::vector<std::string> bindings;
  for (int i = 0; i < 5; ++i) {
    const Pair pair = Connect(near_, far_);
    ASSERT_TRUE(pair.status.ok()) << pair.status;
    EXPECT_EQ(pair.is_resumed, i > 0) << i;
    // A resumed connection has keys of its own.
    EXPECT_THAT(bindings, testing::Not(testing::Contains(pair.binding)));
    bindings.push_back(pair.binding);
  }
}

TEST_F(TlsSessionsTest, AnotherPeerOrNameAndOneThatStartedAgainAreProvenByCertificates) {
  ASSERT_TRUE(Connect(near_, far_).status.ok());
  EXPECT_FALSE(Connect(near_, far_, "far:2").is_resumed);
  EXPECT_FALSE(Connect(near_, far_, "far:1", "localhost").is_resumed);
  const auto again = MakeTls(authority_);
  const Pair pair = Connect(near_, again);
  EXPECT_TRUE(pair.status.ok()) << pair.status;
  EXPECT_FALSE(pair.is_resumed);
  EXPECT_TRUE(Connect(near_, again).is_resumed);
}

// A session that one process has is of no use to others.
TEST_F(TlsSessionsTest, AnImpostorAtTheAddressIsNotTrusted) {
  ASSERT_TRUE(Connect(near_, far_).status.ok());
  const auto other = MakeTls(MakeAuthority("job-b", 10).value());
  EXPECT_EQ(Connect(near_, other).status.code(), absl::StatusCode::kUnauthenticated);
}

// Certificates that live for a few seconds, and one connection before they have expired.
TEST_F(TlsSessionsTest, NoSessionOutlivesACertificate) {
  constexpr long kLife = 15;
  const auto server = MakeCertificate(authority_, {.name = "job", .hosts = {"127.0.0.1"}}).value();
  const auto client =
      MakeCertificate(authority_, {.name = "job", .use = CertificateUse::kClient}).value();
  const auto begun = std::chrono::steady_clock::now();
  const auto brief_server =
      Tls::Create(authority_.certificate, WithLife(authority_, server, -60, kLife), client).value();
  const auto brief_client =
      Tls::Create(authority_.certificate, server, WithLife(authority_, client, -60, kLife)).value();
  ASSERT_TRUE(Connect(near_, brief_server).status.ok());
  ASSERT_TRUE(Connect(brief_client, far_).status.ok());
  std::this_thread::sleep_until(begun + std::chrono::seconds(kLife + 2));
  const Pair by_server = Connect(near_, brief_server), by_client = Connect(brief_client, far_);
  EXPECT_EQ(by_server.status.code(), absl::StatusCode::kUnauthenticated) << by_server.status;
  EXPECT_EQ(by_client.status.code(), absl::StatusCode::kUnauthenticated) << by_client.status;
}

// Several threads dial the same peer.
TEST_F(TlsSessionsTest, OneSessionIsGivenToOneOfSeveralAtOnce) {
  ASSERT_TRUE(Connect(near_, far_).status.ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int k = 0; k < 5; ++k) {
        const Pair pair = Connect(near_, far_);
        EXPECT_TRUE(pair.status.ok()) << pair.status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::net::transport
