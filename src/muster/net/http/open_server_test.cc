#include "muster/net/http/open_server.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class OpenServerTest : public ::testing::Test {
 protected:
  void Start(const std::string& address) {
    auto server = OpenServer::Start(address, 0, {{"/healthz", [this] {
                                                    ++made_;
                                                    return TextResponse("ok\n");
                                                  }}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(std::string_view request) const {
    const RawPeer peer(server_->port());
    EXPECT_TRUE(peer.Send(request));
    return peer.ReadToEnd();
  }
  std::string Get(std::string_view target, std::string_view fields = "") const {
    return Ask(StrCat("GET ", target, " HTTP/1.1\r\nConnection: close\r\n", fields, "\r\n"));
  }

  std::atomic<int> made_ = 0;
  std::unique_ptr<OpenServer> server_;
};

TEST_F(OpenServerTest, AnybodyGetsTheAnswerByAnyNameAtAnyAddress) {
  for (const char* const address : {"127.0.0.1", "0.0.0.0"}) {
    Start(address);
    const std::string answer = Get("/healthz", "Host: pod-1.example\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nok\n"));
  }
}

TEST_F(OpenServerTest, NothingElseIsThere) {
  Start("127.0.0.1");
  EXPECT_THAT(Get("/v1/status"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404"));
  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(Ask(StrCat(method, " /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")),
                StartsWith("HTTP/1.1 405"))
        << method;
  }
  EXPECT_EQ(made_, 0);
}

TEST_F(OpenServerTest, ABodyIsRefusedFromItsHeader) {
  Start("127.0.0.1");
  EXPECT_THAT(Get("/healthz", "Content-Length: 1000\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Get("/healthz", "Transfer-Encoding: chunked\r\n"), StartsWith("HTTP/1.1 411"));
  EXPECT_THAT(Get("/healthz", StrCat("X: ", std::string(9000, 'x'), "\r\n")),
              StartsWith("HTTP/1.1 431"));
  EXPECT_EQ(made_, 0);
}

TEST_F(OpenServerTest, AnAnswerIsMadeOnceForManyWhoAsk) {
  Start("127.0.0.1");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) EXPECT_THAT(Get("/healthz?n=1"), StartsWith("HTTP/1.1 200"));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(made_, 1 + took / std::chrono::seconds(1));
}

TEST_F(OpenServerTest, WhoHoldsConnectionsOpenKeepsNobodyOut) {
  Start("127.0.0.1");
  std::vector<std::unique_ptr<RawPeer>> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(std::make_unique<RawPeer>(server_->port()));
    // Half of them have been answered, and idle.
    if (i % 2 == 0) {
      EXPECT_TRUE(held.back()->Send("GET /healthz HTTP/1.1\r\n\r\n"));
    }
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(WaitFor([&] { return server_->counters().evicted >= 30; }));
  EXPECT_LE(server_->counters().open_strangers, 64U);
  EXPECT_EQ(server_->counters().open_others, 0U);
}

TEST_F(OpenServerTest, ATakenPortIsSaid) {
  Start("127.0.0.1");
  EXPECT_TRUE(absl::IsAlreadyExists(OpenServer::Start("127.0.0.1", server_->port(), {}).status()));
}

}  // namespace
}  // namespace muster::net
