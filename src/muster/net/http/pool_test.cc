// Connections that are kept: used again, found dead, too many, idle for too long.
#include "muster/net/http/pool.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/exchange_test_peer.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpRoute Seven() {
  return {"GET", "/x", [](const HttpRequest&, const HttpReply& reply) { reply.SendJson(7); }};
}

std::shared_ptr<HttpPool> MakePool(HttpPoolOptions options) {
  return HttpPool::Create(std::move(options)).value();
}

// Answers once, and breaks the connection when the next request came.
ScriptedServer::Script BreakAtSecond(std::atomic<int>* broken) {
  return [broken](const RawPeer& peer) {
    ScriptedServer::Answer(SizedAnswer("7"))(peer);
    *broken += peer.ReadUntil("\r\n\r\n").empty() ? 0 : 1;
  };
}

ScriptedServer::Script NotAgain() {
  return [](const RawPeer&) { ADD_FAILURE() << "the request was sent again"; };
}

TEST(HttpPoolTest, OneConnectionServesCallsOfSeveralExchanges) {
  const auto server = StartServer({Seven()});
  const auto pool = MakePool({});
  for (int i = 0; i < 2; ++i) {
    const auto exchange = ExchangeWith(server->url(), {.pool = pool});
    for (int j = 0; j < 3; ++j) EXPECT_EQ(FetchFrom(*exchange, GetCall("/x"))->head.status, 200);
  }
  EXPECT_EQ(server->counters().accepted, 1u);
  const HttpPoolCounters counters = pool->counters();
  EXPECT_EQ(counters.opened, 1u);
  EXPECT_EQ(counters.reused, 5u);
  EXPECT_EQ(counters.idle, 1u);
  EXPECT_EQ(counters.in_use, 0u);
}

TEST(HttpPoolTest, AKeptConnectionThatBreaksBeforeAnAnswerIsMadeAnewOnce) {
  std::atomic<int> broken = 0;
  std::string again;
  const ScriptedServer server({BreakAtSecond(&broken), [&](const RawPeer& peer) {
                                 again = peer.ReadUntil("body");
                                 peer.Send(SizedAnswer("8"));
                               }});
  const auto exchange = ExchangeWith(server.url());
  EXPECT_EQ(FetchFrom(*exchange, GetCall("/1"))->body, "7");
  const auto second =
      FetchFrom(*exchange, {.method = "PUT", .target = "/2", .body = MakeTextBody("body")});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->body, "8");
  EXPECT_EQ(broken, 1);
  EXPECT_THAT(again, StartsWith("PUT /2 "));
}

TEST(HttpPoolTest, ABodyThatCannotBeReadAgainIsNotSentAgain) {
  std::atomic<int> broken = 0;
  const ScriptedServer server({BreakAtSecond(&broken), NotAgain()});
  const auto exchange = ExchangeWith(server.url());
  EXPECT_EQ(FetchFrom(*exchange, GetCall("/1"))->body, "7");
  int pieces = 0;
  const auto one_piece = [&](char* buffer, size_t) -> size_t {
    *buffer = 'a';
    return pieces++ == 0 ? 1 : 0;
  };
  const HttpCall call = {
      .method = "PUT",
      .target = "/2",
      .body = std::make_unique<MadeBody>(std::nullopt, one_piece, /*can_restart=*/false)};
  const absl::Status status = FetchFrom(*exchange, call).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsFailedPrecondition(FetchFrom(*exchange, call).status()));
}

TEST(HttpPoolTest, ACallThatMustNotBeRepeatedIsNot) {
  std::atomic<int> broken = 0;
  const ScriptedServer server({BreakAtSecond(&broken), NotAgain()});
  const auto exchange = ExchangeWith(server.url());
  EXPECT_EQ(FetchFrom(*exchange, GetCall("/1"))->body, "7");
  const absl::Status status =
      FetchFrom(*exchange, {.method = "POST", .target = "/2", .may_be_repeated = false}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(broken, 1);
}

TEST(HttpPoolTest, AConnectionThatItsServerClosedIsNotUsed) {
  HttpServerOptions options;
  options.limits.idle_seconds = 0.01;
  const auto server = StartServer({Seven()}, options);
  const auto pool = MakePool({});
  const auto exchange = ExchangeWith(server->url(), {.pool = pool});
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        FetchFrom(*exchange, {.method = "GET", .target = "/x", .may_be_repeated = false});
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(WaitFor([&] { return server->counters().open_others == 0; }));
  }
  EXPECT_EQ(pool->counters().opened, 3u);
  EXPECT_EQ(pool->counters().reused, 0u);
}

TEST(HttpPoolTest, ConnectionsThatWereIdleForTooLongAreClosed) {
  const auto server = StartServer({Seven()});
  const auto pool = MakePool({.idle_seconds = 0});
  const auto exchange = ExchangeWith(server->url(), {.pool = pool});
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(FetchFrom(*exchange, GetCall("/x")).ok());
    poll(nullptr, 0, 10);
    EXPECT_EQ(pool->counters().opened, i);
  }
  pool->CloseIdle();
  EXPECT_EQ(pool->counters().idle, 0u);
  EXPECT_TRUE(WaitFor([&] { return server->counters().open_others == 0; }));
}

TEST(HttpPoolTest, SomeIdleConnectionsMayStay) {
  const auto pool = MakePool({});
  std::vector<std::unique_ptr<HttpServer>> servers;
  for (int i = 0; i < 3; ++i) {
    servers.push_back(StartServer({Seven()}));
    const auto exchange = ExchangeWith(servers.back()->url(), {.pool = pool});
    ASSERT_TRUE(FetchFrom(*exchange, GetCall("/x")).ok());
  }
  EXPECT_EQ(pool->counters().idle, 3u);
  pool->CloseIdle(5);
  EXPECT_EQ(pool->counters().idle, 3u);
  pool->CloseIdle(1);
  EXPECT_EQ(pool->counters().idle, 1u);
  EXPECT_TRUE(WaitFor([&] { return servers[1]->counters().open_others == 0; }));
  EXPECT_EQ(servers[2]->counters().open_others, 1u);  // the last one
}

TEST(HttpPoolTest, TheLongestIdleAreClosedForNewerOnes) {
  const auto pool = MakePool({.max_connections = 2, .max_idle = 1});
  const auto one = StartServer({Seven()});
  const auto two = StartServer({Seven()});
  ASSERT_TRUE(FetchFrom(*ExchangeWith(one->url(), {.pool = pool}), GetCall("/x")).ok());
  ASSERT_TRUE(FetchFrom(*ExchangeWith(two->url(), {.pool = pool}), GetCall("/x")).ok());
  EXPECT_EQ(pool->counters().idle, 1u);
  EXPECT_TRUE(WaitFor([&] { return one->counters().open_others == 0; }));
  EXPECT_EQ(two->counters().open_others, 1u);
}

TEST(HttpPoolTest, AnIdleConnectionMakesRoomForOneToAnotherServer) {
  const auto pool = MakePool({.max_connections = 1});
  const auto one = StartServer({Seven()});
  const auto two = StartServer({Seven()});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(FetchFrom(*ExchangeWith(one->url(), {.pool = pool}), GetCall("/x")).ok());
    ASSERT_TRUE(FetchFrom(*ExchangeWith(two->url(), {.pool = pool}), GetCall("/x")).ok());
  }
  EXPECT_EQ(pool->counters().opened, 4u);
}

// Answers when it is told to.
class HeldServer {
 public:
  HeldServer()
      : server_(StartServer({{"GET", "/x", [this](const HttpRequest&, const HttpReply& reply) {
                                held_.push_back(reply);
                              }}})) {}
  ~HeldServer() { server_->Stop(); }
  HeldServer(const HeldServer&) = delete;
  HeldServer& operator=(const HeldServer&) = delete;

  std::string url() const { return server_->url(); }
  bool HasRequests(uint64_t count) const {
    return WaitFor([&] { return server_->counters().requests == count; });
  }
  void AnswerAll() {
    server_->Post([this] {
      for (const HttpReply& reply : held_) reply.SendJson(7);
    });
  }

 private:
  std::vector<HttpReply> held_ = {};  // io thread only
  const std::unique_ptr<HttpServer> server_;
};

TEST(HttpPoolTest, ACallWaitsForAFreeConnectionUntilItsDeadline) {
  HeldServer held;
  const auto pool = MakePool({.max_connections = 1});
  const auto exchange = ExchangeWith(held.url(), {.pool = pool});
  std::thread first([&] { EXPECT_TRUE(FetchFrom(*exchange, GetCall("/x")).ok()); });
  ASSERT_TRUE(held.HasRequests(1));
  for (const HttpTimeouts& timeouts :
       {HttpTimeouts{.total_seconds = 0.05}, HttpTimeouts{.silence_seconds = 0.05}}) {
    const absl::Status status = exchange->Send(GetCall("/x"), {}, timeouts).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("all 1 connections of the pool are in use"));
  }
  std::thread second(
      [&] { EXPECT_FALSE(FetchFrom(*exchange, GetCall("/y")).value().body.empty()); });
  held.AnswerAll();
  first.join();
  second.join();
  EXPECT_EQ(pool->counters().opened, 1u);
}

TEST(HttpPoolTest, CancelEndsTheWaitForAFreeConnectionAndNoCallOfOtherExchanges) {
  HeldServer held;
  const auto pool = MakePool({.max_connections = 1});
  const auto holding = ExchangeWith(held.url(), {.pool = pool});
  std::thread first([&] { EXPECT_TRUE(FetchFrom(*holding, GetCall("/x")).ok()); });
  ASSERT_TRUE(held.HasRequests(1));
  const auto waiting = ExchangeWith(held.url(), {.pool = pool});
  std::thread second([&] {
    const absl::Status status = FetchFrom(*waiting, GetCall("/x")).status();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
  poll(nullptr, 0, 20);  // before or while it waits: both end the same way
  waiting->Cancel();
  second.join();
  held.AnswerAll();
  first.join();
}

TEST(HttpPoolTest, AConnectionThatACancelledCallGaveBackServesOthers) {
  HeldServer held;
  const auto pool = MakePool({.max_connections = 1});
  const auto cancelled = ExchangeWith(held.url(), {.pool = pool});
  std::thread first(
      [&] { EXPECT_TRUE(absl::IsCancelled(FetchFrom(*cancelled, GetCall("/x")).status())); });
  ASSERT_TRUE(held.HasRequests(1));
  cancelled->Cancel();
  first.join();
  const auto server = StartServer({Seven()});
  const auto answer = FetchFrom(*ExchangeWith(server->url(), {.pool = pool}), GetCall("/x"));
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST(HttpPoolTest, ThreadsShareAFewConnections) {
  constexpr int kThreads = 8, kCalls = 40;
  const auto server = StartServer({Seven()});
  const auto pool = MakePool({.max_connections = 3, .max_idle = 3});
  const auto exchange = ExchangeWith(server->url(), {.pool = pool});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kCalls; ++j) {
        const auto answer = FetchFrom(*exchange, GetCall("/x"));
        right += answer.ok() && answer->body == "7\n" ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
  EXPECT_LE(pool->counters().opened, 3u);
  EXPECT_EQ(server->counters().accepted, pool->counters().opened);
}

}  // namespace
}  // namespace muster::net
