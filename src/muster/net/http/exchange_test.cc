// Streams in both directions, deadlines, and answers of every status.
#include "muster/net/http/exchange.h"

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/exchange_test_peer.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kMomentSeconds = 0.1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kWatchHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(std::string_view text) {
  return StrCat(absl::Hex(text.size()), "\r\n", text, "\r\n");
}

// More than the sockets hold.
constexpr size_t kLargeBytes = size_t{32} << 20;

TEST(HttpExchangeTest, ALargeBodyIsReadFromItsSourceAsTheServerTakesIt) {
  auto body = MadeBody::Letters(kLargeBytes);
  const MadeBody& source = *body;
  const ScriptedServer server({[&](const RawPeer& peer) {
    EXPECT_THAT(peer.ReadUntil("\r\n\r\n"), HasSubstr(StrCat("\r\nContent-Length: ", kLargeBytes)));
    EXPECT_LT(source.read(), kLargeBytes / 2) << "nothing of it was taken yet";
    // The first ReadUntil() may have taken some bytes of the body.
    while (source.read() < kLargeBytes) peer.ReadBytes(size_t{1} << 16);
    peer.Send(SizedAnswer("done"));
    peer.ReadToEnd();
  }});
  const auto exchange = ExchangeWith(server.url());
  const auto answer =
      FetchFrom(*exchange, {.method = "PUT", .target = "/x", .body = std::move(body)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "done");
}

TEST(HttpExchangeTest, ABodyOfUnknownSizeArrivesWhileItIsStillBeingMade) {
  std::atomic<bool> arrived = false;
  int piece = 0;
  auto body = std::make_unique<MadeBody>(std::nullopt, [&](char* buffer, size_t) -> size_t {
    EXPECT_TRUE(piece != 1 || WaitFor([&] { return arrived.load(); }));
    *buffer = 'a';
    return piece++ < 2 ? 1 : 0;
  });
  std::string asked;
  const ScriptedServer server({[&](const RawPeer& peer) {
    asked = peer.ReadUntil("1\r\na\r\n");
    arrived = true;
    asked += peer.ReadUntil("0\r\n\r\n");
    peer.Send(SizedAnswer("done"));
  }});
  const auto answer = FetchFrom(*ExchangeWith(server.url()),
                                {.method = "PUT", .target = "/x", .body = std::move(body)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(asked, AllOf(HasSubstr("\r\nTransfer-Encoding: chunked\r\n"),
                           EndsWith("\r\n\r\n1\r\na\r\n1\r\na\r\n0\r\n\r\n")));
}

TEST(HttpExchangeTest, ABodyIsHandedOnBeforeItsEndIsSent) {
  std::atomic<size_t> taken = 0;
  std::atomic<int> status = 0;
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send("HTTP/1.1 206 Partial Content\r\nContent-Length: 6\r\n\r\n");
    EXPECT_TRUE(WaitFor([&] { return status == 206; }));
    peer.Send("abc");
    EXPECT_TRUE(WaitFor([&] { return taken == 3; }));
    peer.Send("def");
  }});
  std::string body;
  const auto head = ExchangeWith(server.url())
                        ->Send(GetCall("/x"),
                               {.head =
                                    [&](const HttpAnswerHead& begun) {
                                      status = begun.status;
                                      return absl::OkStatus();
                                    },
                                .body =
                                    [&](std::string_view bytes) {
                                      body += bytes;
                                      taken = body.size();
                                      return absl::OkStatus();
                                    }},
                               {.total_seconds = kTestSeconds});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->status, 206);
  EXPECT_EQ(body, "abcdef");
}

// Each event is sent only after the one before it was taken.
TEST(HttpExchangeTest, AWatchsEventsAreHandedOnOneByOneUntilTheServerEndsIt) {
  constexpr size_t kEvents = 20;
  std::atomic<size_t> taken = 0;
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(kWatchHead);
    for (size_t i = 0; i < kEvents; ++i) {
      EXPECT_TRUE(WaitFor([&] { return taken == i; }));
      peer.Send(Chunk(StrCat("{\"n\":", i, "}\n")));
    }
    peer.Send("0\r\n\r\n");
  }});
  std::vector<std::string> events;
  const auto take = [&](std::string_view bytes) {
    events.emplace_back(bytes);
    taken = events.size();
    return absl::OkStatus();
  };
  const auto head =
      ExchangeWith(server.url())
          ->Send(GetCall("/pods?watch=1"), {.body = take}, {.silence_seconds = kTestSeconds});
  ASSERT_TRUE(head.ok()) << head.status();
  ASSERT_EQ(events.size(), kEvents);
  EXPECT_EQ(events.back(), "{\"n\":19}\n");
}

TEST(HttpExchangeTest, AServerThatFallsSilentEndsAWatchWithoutADeadline) {
  const ScriptedServer server({[](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(kWatchHead + Chunk("event"));
    peer.ReadToEnd();  // the client gives up
  }});
  const absl::Status status =
      ExchangeWith(server.url())
          ->Send(GetCall("/x?token=secret"), {}, {.silence_seconds = kMomentSeconds})
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(),
            StrCat("GET ", server.url(), "/x: not a byte in 0.1 s: 5 bytes of its body came"));
}

TEST(HttpExchangeTest, AServerThatTakesNothingIsSilentToo) {
  std::atomic<bool> over = false;
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(WaitFor([&] { return over.load(); }));
  }});
  const HttpCall call = {.method = "PUT", .target = "/x", .body = MadeBody::Letters(kLargeBytes)};
  const absl::Status status =
      ExchangeWith(server.url())->Send(call, {}, {.silence_seconds = kMomentSeconds}).status();
  over = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("not a byte in 0.1 s: nothing of it came"));
}

// What is late is the sink: the bytes are there.
TEST(HttpExchangeTest, TheSinksTimeIsNoSilence) {
  const ScriptedServer server({ScriptedServer::Answer(kWatchHead + Chunk("a") + "0\r\n\r\n")});
  const auto slow = [&](std::string_view) {
    poll(nullptr, 0, static_cast<int>(3 * kMomentSeconds * 1000));
    return absl::OkStatus();
  };
  const auto head = ExchangeWith(server.url())
                        ->Send(GetCall("/x"), {.body = slow}, {.silence_seconds = kMomentSeconds});
  EXPECT_TRUE(head.ok()) << head.status();
}

TEST(HttpExchangeTest, TheWholeCallsDeadlineHoldsWhileBytesArrive) {
  const ScriptedServer server({[](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    bool open = peer.Send(kWatchHead);
    while (open && !peer.ClosedWithin(1)) open = peer.Send(Chunk("event"));
  }});
  const absl::Status status =
      ExchangeWith(server.url())
          ->Send(GetCall("/x"), {}, {.total_seconds = kMomentSeconds, .silence_seconds = kInfinity})
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("no answer in time: "));
}

TEST(HttpExchangeTest, AReceiversErrorEndsTheCallAndIsReturned) {
  for (const bool at_head : {true, false}) {
    std::atomic<bool> closed = false;
    const ScriptedServer server({[&](const RawPeer& peer) {
      peer.ReadUntil("\r\n\r\n");
      peer.Send(kWatchHead + Chunk("event"));
      peer.ReadToEnd();
      closed = true;
    }});
    const absl::Status full = absl::OutOfRangeError("the disk is full");
    const auto status =
        ExchangeWith(server.url())
            ->Send(
                GetCall("/x"),
                {.head = [&](const HttpAnswerHead&) { return at_head ? full : absl::OkStatus(); },
                 .body = [&](std::string_view) { return full; }},
                {})
            .status();
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_EQ(status.message(), StrCat("GET ", server.url(), "/x: the disk is full"));
    EXPECT_TRUE(WaitFor([&] { return closed.load(); }));
  }
}

TEST(HttpExchangeTest, ASourcesErrorEndsTheCallAndIsReturned) {
  const ScriptedServer server({[](const RawPeer& peer) { peer.ReadToEnd(); }});
  auto body = std::make_unique<MadeBody>(std::nullopt, [](char*, size_t) {
    return absl::StatusOr<size_t>(absl::UnavailableError("the file's disk is gone"));
  });
  const absl::Status status =
      FetchFrom(*ExchangeWith(server.url()),
                {.method = "PUT", .target = "/x", .body = std::move(body), .what = "copy a file"})
          .status();
  EXPECT_EQ(status, absl::UnavailableError("copy a file: the file's disk is gone"));
}

TEST(HttpExchangeTest, CancelEndsAWatchInTheMidstAndEveryLaterCall) {
  std::atomic<bool> taken = false;
  const ScriptedServer server({[&](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send(kWatchHead + Chunk("event"));
    peer.ReadToEnd();
  }});
  const auto exchange = ExchangeWith(server.url());
  std::thread cancelling([&] {
    EXPECT_TRUE(WaitFor([&] { return taken.load(); }));
    exchange->Cancel();
  });
  const auto take = [&](std::string_view) {
    taken = true;
    return absl::OkStatus();
  };
  const absl::Status status = exchange->Send(GetCall("/x"), {.body = take}, {}).status();
  cancelling.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(exchange->Send(GetCall("/x"), {}, {}).status()));
}

TEST(HttpExchangeTest, EveryStatusIsAnAnswerWithItsFieldsAndBody) {
  struct Case {
    std::string first_line = {};
    int status = 0;
    std::string field = {};
    std::string value = {};
  };
  const std::vector<Case> cases = {
      {"307 Temporary Redirect", 307, "Location", "http://dn:9864/webhdfs/v1/a?op=CREATE"},
      {"400 Bad Request", 400, "Content-Type", "application/json"},
      {"401 Unauthorized", 401, "WWW-Authenticate", "Negotiate"},
      {"409 Conflict", 409, "Content-Type", "application/json"},
      {"410 Gone", 410, "Audit-Id", "7"},
      {"429 Too Many Requests", 429, "Retry-After", "3"},
      {"503 Service Unavailable", 503, "Retry-After", "1"}};
  for (const Case& test : cases) {
    const ScriptedServer server({ScriptedServer::Answer(
        StrCat("HTTP/1.1 ", test.first_line, "\r\n", test.field, ": ", test.value,
               "\r\nContent-Length: 13\r\n\r\n{\"code\":\"why\"}"))});
    const auto answer = FetchFrom(*ExchangeWith(server.url()), GetCall("/x"));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->head.status, test.status);
    ASSERT_NE(answer->head.Find(test.field), nullptr) << test.first_line;
    EXPECT_EQ(*answer->head.Find(test.field), test.value);
    EXPECT_EQ(answer->body, "{\"code\":\"why\"");
  }
}

// The server takes nothing after the head; the sockets do not hold the rest.
TEST(HttpExchangeTest, AnAnswerIsHeardBeforeTheBodyIsSentAndTheRestIsNotRead) {
  std::atomic<bool> heard = false;
  const ScriptedServer server({[&](const RawPeer& peer) {
    ScriptedServer::Answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nwhy")(peer);
    EXPECT_TRUE(WaitFor([&] { return heard.load(); }));
  }});
  auto body = MadeBody::Letters(kLargeBytes);
  const HttpCall call = {.method = "PUT", .target = "/x", .body = std::move(body)};
  const auto answer = FetchFrom(*ExchangeWith(server.url()), call);
  heard = true;
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->head.status, 413);
  EXPECT_EQ(answer->body, "why");
  EXPECT_LT(static_cast<const MadeBody&>(*call.body).read(), kLargeBytes);
}

// Closing with bytes unread, the server resets the connection, right after its answer.
TEST(HttpExchangeTest, AnAnswerIsHeardFromAServerThatThenBreaksTheConnection) {
  const ScriptedServer server({ScriptedServer::Answer(
      "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 3\r\n\r\nwhy")});
  const HttpCall call = {.method = "PUT", .target = "/x", .body = MadeBody::Letters(kLargeBytes)};
  const auto answer = FetchFrom(*ExchangeWith(server.url()), call);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->head.status, 403);
  EXPECT_EQ(answer->body, "why");
}

TEST(HttpExchangeTest, WhatCouldNotStandInARequestIsNotSentAndNotRepeated) {
  const ScriptedServer server({[](const RawPeer&) { ADD_FAILURE() << "it was sent"; }});
  const auto exchange = ExchangeWith(server.url());
  std::vector<HttpCall> calls(3);
  calls[0] = GetCall("/a\r\nX: secret\r\n\r\n");
  calls[1] = GetCall("/a");
  calls[1].fields = {{"X", "a\r\nY: secret"}};
  calls[2] = GetCall("/a");
  calls[2].fields = {{"X: secret\r\nY", "a"}};
  for (const HttpCall& call : calls) {
    const absl::Status status = exchange->Send(call, {}, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr(server.url()), Not(HasSubstr("secret"))));
  }
}

TEST(HttpExchangeTest, ALongerAnswerThanIsAcceptedIsRefusedBeforeItIsTaken) {
  const ScriptedServer server({ScriptedServer::Answer(SizedAnswer(std::string(2000, 'a')))});
  const auto answer = ExchangeWith(server.url())->Fetch(GetCall("/x"), 1000, {});
  EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().ToString(), HasSubstr("more than the 1000 bytes"));
}

TEST(HttpExchangeTest, TheAnswerToHeadIsItsFields) {
  const ScriptedServer server(
      {ScriptedServer::Answer("HTTP/1.1 200 OK\r\nContent-Length: 7000\r\n\r\n")});
  const auto answer = FetchFrom(*ExchangeWith(server.url()), {.method = "HEAD", .target = "/x"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer->head.Find("content-length"), "7000");
}

}  // namespace
}  // namespace muster::net
