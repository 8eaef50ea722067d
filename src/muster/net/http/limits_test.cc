// What strangers and slow or greedy peers get from an HttpServer.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kHost = "Host: localhost\r\n";

HttpRoute TakesBodies() {
  return {"POST", "/x",
          [](const HttpRequest& request, const HttpReply& reply) { reply.SendJson(request.body); }};
}

std::string PostHead(std::string_view fields) {
  return StrCat("POST /x HTTP/1.1\r\n", kHost, "Content-Type: application/json\r\n", fields,
                "\r\n");
}

std::string AnswerTo(const HttpServer& server, std::string_view bytes) {
  const RawPeer peer(server.port());
  EXPECT_TRUE(peer.Send(bytes));
  return peer.ReadToEnd();
}

TEST(HttpLimitsTest, TooLargeHeaderIsRefusedHoweverItComes) {
  HttpServerOptions options;
  options.limits.header_bytes = 4096;
  const auto server = StartServer({TakesBodies()}, options);
  const std::string one_field = StrCat("GET /x HTTP/1.1\r\nA: ", std::string(10000, 'a'));
  EXPECT_THAT(AnswerTo(*server, one_field), StartsWith("HTTP/1.1 431"));
  std::string many_fields = "GET /x HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) many_fields += "A: 0123456789\r\n";
  EXPECT_THAT(AnswerTo(*server, many_fields), StartsWith("HTTP/1.1 431"));
  const RawPeer slowly(server->port());
  bool open = slowly.Send("GET /x HTTP/1.1\r\n");
  while (open && !slowly.ReadableWithin(0)) open = slowly.Send("A: b\r\n");
  EXPECT_THAT(slowly.ReadToEnd(), StartsWith("HTTP/1.1 431"));
}

TEST(HttpLimitsTest, TooLargeBodyIsRefusedFromItsHeader) {
  HttpServerOptions options;
  options.limits.body_bytes = 1000;
  const auto server = StartServer({TakesBodies()}, options);
  EXPECT_THAT(AnswerTo(*server, PostHead("Content-Length: 1001\r\n")), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(AnswerTo(*server, PostHead("Content-Length: 99999999999999999999\r\n")),
              StartsWith("HTTP/1.1 400"));
  const auto answer = MakeClient(*server)->Post("/x", std::string(2000, 'a'), kTestSeconds);
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().ToString(), HasSubstr("more than 1000 bytes"));
  EXPECT_EQ(server->counters().requests, 0u);
}

TEST(HttpLimitsTest, BodiesWithoutALengthAreRefused) {
  const auto server = StartServer({TakesBodies()});
  for (const char* fields : {"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n",
                             "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n"}) {
    EXPECT_THAT(AnswerTo(*server, PostHead(fields) + "1\r\n7\r\n0\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 411"), HasSubstr("with Content-Length")))
        << fields;
  }
  EXPECT_THAT(AnswerTo(*server, PostHead("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")),
              StartsWith("HTTP/1.1 4"));
}

TEST(HttpLimitsTest, ABodyIsAskedForWhenThePeerWaitsForThat) {
  const auto server = StartServer({TakesBodies()});
  const RawPeer peer(server->port());
  ASSERT_TRUE(peer.Send(PostHead("Content-Length: 3\r\nExpect: 100-continue\r\n")));
  EXPECT_EQ(peer.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(peer.Send("[7]"));
  EXPECT_THAT(peer.ReadUntil("[7]"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpLimitsTest, PipelinedRequestsAreAnsweredInOrder) {
  const auto server = StartServer({TakesBodies()});
  std::string requests;
  for (int i = 0; i < 50; ++i) {
    const std::string body = StrCat("[", i, "]");
    requests += PostHead(StrCat("Content-Length: ", body.size(), "\r\n")) + body;
  }
  const RawPeer peer(server->port());
  ASSERT_TRUE(peer.Send(requests));
  const std::string answers = peer.ReadUntil("[49]");
  size_t place = 0;
  for (int i = 0; i < 50; ++i) {
    place = answers.find(StrCat("[", i, "]"), place);
    ASSERT_NE(place, std::string::npos) << i;
  }
}

TEST(HttpLimitsTest, BadBodiesAndRequestsSayWhatIsWrong) {
  const auto server = StartServer({TakesBodies()});
  const auto post = [&](std::string_view body, std::string_view type = "application/json") {
    return AnswerTo(*server, StrCat("POST /x HTTP/1.1\r\n", kHost, "Connection: close\r\n",
                                    "Content-Type: ", type, "\r\nContent-Length: ", body.size(),
                                    "\r\n\r\n", body));
  };
  EXPECT_THAT(post("{\"a\": }"), HasSubstr("request body: byte 7: this is no JSON"));
  EXPECT_THAT(post("\xff"), HasSubstr("this is no JSON"));
  EXPECT_THAT(post(std::string(100'000, '[')), HasSubstr("more than 64 levels"));
  EXPECT_THAT(post("1e999"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(post("{}", "text/plain"), StartsWith("HTTP/1.1 415"));
  EXPECT_THAT(post("[1]", "Application/JSON; charset=utf-8"), StartsWith("HTTP/1.1 200"));
  const auto target = [&](std::string_view text) {
    return AnswerTo(*server,
                    StrCat("GET ", text, " HTTP/1.1\r\n", kHost, "Connection: close\r\n\r\n"));
  };
  EXPECT_THAT(AnswerTo(*server, StrCat("HEAD /x HTTP/1.1\r\n", kHost, "\r\n")),
              HasSubstr("Connection: close"));
  EXPECT_THAT(target("x"), HasSubstr("must be a path that starts with /"));
  EXPECT_THAT(target("/%4"), HasSubstr("% without two hex digits"));
  EXPECT_THAT(target("/%00"), HasSubstr("a control character"));
  EXPECT_THAT(target("/%ff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(AnswerTo(*server, "\x16\x03\x01 TLS to a plain port\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(server->counters().requests, 1u);
}

TEST(HttpLimitsTest, ASlowHeaderEndsAtItsDeadlineHoweverItTrickles) {
  HttpServerOptions options;
  options.limits.header_seconds = 0.1;
  const auto server = StartServer({TakesBodies()}, options);
  const RawPeer silent(server->port());
  const RawPeer trickling(server->port());
  bool open = trickling.Send("GET /x HTTP/1.1\r\nA: ");
  while (open && !trickling.ClosedWithin(1)) open = trickling.Send("a");
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(WaitFor([&] { return server->counters().timed_out == 2; }));
  EXPECT_TRUE(WaitFor([&] { return server->counters().open_strangers == 0; }));
}

TEST(HttpLimitsTest, ASlowBodyAndASlowReaderEndAtTheirDeadlines) {
  HttpServerOptions options;
  options.limits.body_seconds = 0.1;
  options.limits.write_seconds = 0.1;
  const std::string large(size_t{64} << 20, 'a');  // more than the sockets hold
  const auto server = StartServer(
      {TakesBodies(),
       {"GET", "/large",
        [&](const HttpRequest&, const HttpReply& reply) { reply.Send(TextResponse(large)); }}},
      options);
  const RawPeer slow_body(server->port());
  ASSERT_TRUE(slow_body.Send(PostHead("Content-Length: 1000000\r\n")));
  while (!slow_body.ClosedWithin(1) && slow_body.Send("a")) {
  }
  EXPECT_TRUE(WaitFor([&] { return server->counters().timed_out == 1; }));
  const RawPeer slow_reader(server->port());
  ASSERT_TRUE(slow_reader.Send(StrCat("GET /large HTTP/1.1\r\n", kHost, "\r\n")));
  EXPECT_TRUE(WaitFor([&] { return server->counters().timed_out == 2; }));
}

TEST(HttpLimitsTest, AnIdleConnectionEndsAtItsDeadline) {
  HttpServerOptions options;
  options.limits.idle_seconds = 0.05;
  const auto server = StartServer({TakesBodies()}, options);
  const RawPeer peer(server->port());
  ASSERT_TRUE(peer.Send(PostHead("Content-Length: 3\r\n") + "[7]"));
  EXPECT_THAT(peer.ReadToEnd(), HasSubstr("[7]"));
  EXPECT_TRUE(WaitFor([&] { return server->counters().open_others == 0; }));
}

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  size_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Each sends almost a whole header and waits; each tenth is kept open on its side too.
TEST(HttpLimitsTest, TenThousandStrangersCostWhatAFewCostAndShutNobodyOut) {
  constexpr int kStrangers = 10'000;
  constexpr size_t kAtOnce = 64;
  const auto token = Token::Make();
  ASSERT_TRUE(token.ok());
  HttpServerOptions options;
  options.token = *token;
  options.limits.strangers = kAtOnce;
  options.limits.header_seconds = kTestSeconds;
  const auto server = StartServer({TakesBodies()}, options);
  const auto friend_client = MakeClient(*server, {.token = *token});
  ASSERT_TRUE(friend_client->Post("/x", {1}, kTestSeconds).ok());
  const size_t before = ResidentBytes();
  const std::string header = StrCat("GET /x HTTP/1.1\r\nA: ", std::string(12'000, 'a'));
  std::vector<RawPeer> kept;
  uint64_t most_open = 0;
  for (int i = 0; i < kStrangers; ++i) {
    RawPeer peer(server->port());
    ASSERT_TRUE(peer.connected()) << i;
    peer.Send(header);
    if (i % 50 == 0) kept.push_back(std::move(peer));
    most_open = std::max(most_open, server->counters().open_strangers);
    if (i % 1000 == 500) {
      EXPECT_TRUE(friend_client->Post("/x", {i}, kTestSeconds).ok());
      EXPECT_TRUE(MakeClient(*server, {.token = *token})->Post("/x", {i}, kTestSeconds).ok());
    }
  }
  EXPECT_TRUE(WaitFor([&] { return server->counters().accepted >= kStrangers; }));
  EXPECT_LE(most_open, kAtOnce);
  EXPECT_LE(server->counters().open_strangers, kAtOnce);
  EXPECT_GT(server->counters().evicted, 100u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(ResidentBytes(), before + (size_t{16} << 20));
#else
  (void)before;
#endif
}

}  // namespace
}  // namespace muster::net
