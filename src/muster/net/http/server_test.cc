#include "muster/net/http/server.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;

HttpRoute Echo(std::string method, std::string path) {
  return {.method = std::move(method),
          .path = std::move(path),
          .handler = [](const HttpRequest& request, const HttpReply& reply) {
            reply.SendJson({{"method", request.method},
                            {"path", request.path},
                            {"parameters", request.parameters},
                            {"query", request.query},
                            {"body", request.body}});
          }};
}

TEST(HttpServerTest, HandlersGetMethodParametersQueryAndBody) {
  const auto server = StartServer({Echo("POST", "/v1/jobs/{job}"), Echo("GET", "/v1/jobs/{job}"),
                                   Echo("DELETE", "/v1/jobs/{job}")});
  const auto client = MakeClient(*server);
  const auto posted = client->Post("/v1/jobs/a%2Fb?wait=5&x=%C3%A4+b", {{"n", 1}}, kTestSeconds);
  ASSERT_TRUE(posted.ok()) << posted.status();
  EXPECT_EQ(*posted, Json::parse(R"({"method":"POST","path":"/v1/jobs/a%2Fb",
      "parameters":{"job":"a/b"},"query":{"wait":"5","x":"ä b"},"body":{"n":1}})"));
  const auto got = client->Get("/v1/jobs/b", kTestSeconds);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)["body"], Json());
  const auto deleted = client->Call("DELETE", "/v1/jobs/b", Json(), kTestSeconds);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ((*deleted)["method"], "DELETE");
  EXPECT_EQ(server->counters().accepted, 1u) << "the connection is kept";
}

TEST(HttpServerTest, AHandlersErrorReachesTheCallerWithItsCode) {
  const auto server = StartServer({{"GET", "/x", [](const HttpRequest&, const HttpReply& reply) {
                                      reply.SendError(absl::AbortedError("an older epoch"));
                                    }}});
  const auto answer = MakeClient(*server)->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsAborted(answer.status())) << answer.status();
  EXPECT_EQ(answer.status().message(), StrCat("GET ", server->url(), "/x: an older epoch"));
}

TEST(HttpServerTest, UnknownPathsAndMethodsSayWhatThereIs) {
  const auto server = StartServer({Echo("GET", "/x"), Echo("POST", "/x")});
  const auto client = MakeClient(*server);
  const auto missing = client->Get("/y", kTestSeconds);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(missing.status().ToString(), HasSubstr("there is nothing at /y"));
  const auto method = client->Call("PUT", "/x", Json(), kTestSeconds);
  EXPECT_TRUE(absl::IsUnimplemented(method.status()));
  EXPECT_THAT(method.status().ToString(), HasSubstr("/x takes GET, POST"));
  EXPECT_TRUE(client->Get("/x", kTestSeconds).ok());
  EXPECT_EQ(server->counters().accepted, 1u) << "a refusal of a friend closes nothing";
}

TEST(HttpServerTest, AnAnswerMayComeLaterFromAnotherThread) {
  std::thread answering;
  const auto server =
      StartServer({{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) {
                      answering = std::thread([reply] { reply.SendJson({{"late", true}}); });
                    }}});
  const auto answer = MakeClient(*server)->Get("/x", kTestSeconds);
  answering.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["late"], true);
}

TEST(HttpServerTest, ALongPollEndsWithItsOwnAnswer) {
  std::vector<HttpReply> kept;  // io thread only
  const auto server = StartServer({{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) {
                                      kept.push_back(reply);
                                      reply.AnswerAfter(0.01, JsonResponse({{"changed", false}}));
                                    }}});
  const auto answer = MakeClient(*server)->Get("/x", kTestSeconds);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["changed"], false);
  server->Stop();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_TRUE(kept[0].over());
  kept[0].SendJson({});  // no answer any more, no harm
}

TEST(HttpServerTest, AHandlerThatForgetsOrThrowsIsAnsweredForIt) {
  const auto server = StartServer({{"GET", "/forgets", [](const HttpRequest&, const HttpReply&) {}},
                                   {"POST", "/takes",
                                    [](const HttpRequest& request, const HttpReply& reply) {
                                      reply.SendJson(request.body.at("n").get<int>());
                                    }},
                                   {"GET", "/throws", [](const HttpRequest&, const HttpReply&) {
                                      throw std::runtime_error("broken");
                                    }}});
  const auto client = MakeClient(*server);
  const auto forgets = client->Get("/forgets", kTestSeconds);
  EXPECT_TRUE(absl::IsInternal(forgets.status()));
  EXPECT_THAT(forgets.status().ToString(), HasSubstr("gave no answer"));
  const auto takes = client->Post("/takes", {{"m", 1}}, kTestSeconds);
  EXPECT_TRUE(absl::IsInvalidArgument(takes.status()));
  EXPECT_THAT(takes.status().ToString(), HasSubstr("key 'n' not found"));
  const auto throws = client->Get("/throws", kTestSeconds);
  EXPECT_TRUE(absl::IsInternal(throws.status()));
  EXPECT_EQ(client->Post("/takes", {{"n", 7}}, kTestSeconds).value(), 7);
}

TEST(HttpServerTest, TheFirstAnswerCounts) {
  const auto server = StartServer({{"GET", "/x", [](const HttpRequest&, const HttpReply& reply) {
                                      reply.SendJson(1);
                                      reply.SendJson(2);
                                      reply.AnswerAfter(0, JsonResponse(3));
                                    }}});
  const auto client = MakeClient(*server);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client->Get("/x", kTestSeconds).value(), 1);
}

TEST(HttpServerTest, ASlowHandlerIsAnsweredForAtItsDeadline) {
  std::vector<HttpReply> kept;  // io thread only
  HttpServerOptions options;
  options.limits.answer_seconds = 0.01;
  const auto server = StartServer({{"GET", "/x",
                                    [&](const HttpRequest&, const HttpReply& reply) {
                                      kept.push_back(reply);
                                      reply.AnswerAfter(1000, JsonResponse("too late"));
                                    }},
                                   Echo("GET", "/y")},
                                  options);
  const auto client = MakeClient(*server);
  const auto answer = client->Get("/x", kTestSeconds);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "too late") << "AnswerAfter is cut to what the limit leaves";
  EXPECT_TRUE(client->Get("/y", kTestSeconds).ok()) << "the connection continues";
  server->Stop();
}

TEST(HttpServerTest, APeerThatLeavesIsNoticed) {
  std::vector<HttpReply> kept;  // io thread only until Stop
  std::atomic<bool> over = false;
  const auto server = StartServer(
      {{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) { kept.push_back(reply); }}});
  {
    const RawPeer peer(server->port());
    ASSERT_TRUE(peer.Send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(WaitFor([&] { return server->counters().requests == 1; }));
  }
  EXPECT_TRUE(WaitFor([&] {
    server->Post([&] { over = kept.front().over(); });
    return over.load();
  }));
  EXPECT_TRUE(WaitFor([&] { return server->counters().open_others == 0; }));
  server->Stop();
}

TEST(HttpServerTest, StopAnswersOpenLongPolls) {
  constexpr int kPolls = 20;
  std::vector<HttpReply> kept;  // io thread only until Stop
  auto server = StartServer(
      {{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) { kept.push_back(reply); }}});
  std::vector<std::thread> threads;
  std::vector<absl::Status> results(kPolls);
  for (int i = 0; i < kPolls; ++i) {
    threads.emplace_back(
        [&, i] { results[i] = MakeClient(*server)->Get("/x", kTestSeconds).status(); });
  }
  EXPECT_TRUE(WaitFor([&] { return server->counters().requests == kPolls; }));
  server->Stop();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    EXPECT_TRUE(absl::IsUnavailable(result)) << result;
    EXPECT_THAT(result.ToString(), HasSubstr("the server is stopping"));
  }
  server->Stop();  // again
  server.reset();
  EXPECT_TRUE(kept.front().over());
  kept.front().SendJson({});  // later than the server
}

TEST(HttpServerTest, PostRunsInOrderBesideHandlersAndNotAfterStop) {
  std::vector<int> order;  // io thread only until Stop
  const auto server = StartServer({});
  for (int i = 0; i < 100; ++i) server->Post([&order, i] { order.push_back(i); });
  server->Stop();
  server->Post([&order] { order.push_back(-1); });
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(HttpServerTest, StopLetsAnswersGoThatWereGiven) {
  for (int round = 0; round < 20; ++round) {
    std::unique_ptr<HttpServer> server;
    std::atomic<bool> answered = false;
    server = StartServer({{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) {
                             reply.SendJson(7);
                             answered = true;
                           }}});
    absl::StatusOr<Json> answer;
    std::thread asking([&, url = server->url()] {
      answer = HttpClient::Create({.url = url}).value()->Get("/x", kTestSeconds);
    });
    EXPECT_TRUE(WaitFor([&] { return answered.load(); }));
    server->Stop();
    asking.join();
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
}

TEST(HttpServerTest, WorkThatPostsItselfDoesNotHoldStop) {
  const auto server = StartServer({});
  std::function<void()> again = [&] { server->Post(again); };
  server->Post(again);
  server->Stop();
}

TEST(HttpServerTest, StartErrorsSayWhatToDo) {
  const auto first = StartServer({});
  HttpServerOptions taken;
  taken.port = first->port();
  const auto second = HttpServer::Start(taken, {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(second.status().ToString(),
              HasSubstr(StrCat("listen on 127.0.0.1:", first->port(), ": Address already in use")));
  HttpServerOptions named;
  named.address = "localhost";
  EXPECT_THAT(HttpServer::Start(named, {}).status().ToString(), HasSubstr("such as 127.0.0.1"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      HttpServer::Start({}, {Echo("GET", "/{a}"), Echo("GET", "/{b}")}).status()));
}

TEST(HttpServerTest, NoDescriptorIsLeftBehind) {
  const auto count = [] {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      ++entries;
    }
    return entries;
  };
  ASSERT_TRUE(
      MakeClient(*StartServer({Echo("GET", "/x")}))->Get("/y", kTestSeconds).status().code() !=
      absl::StatusCode::kOk);  // libraries open what they keep
  const size_t before = count();
  {
    const auto server = StartServer({Echo("GET", "/x")});
    const auto client = MakeClient(*server);
    EXPECT_TRUE(client->Get("/x", kTestSeconds).ok());
    const RawPeer idle(server->port());
    EXPECT_TRUE(WaitFor([&] { return server->counters().accepted == 2; }));
    server->Stop();
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace muster::net
