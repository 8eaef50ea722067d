// What servers may do to a client: answers in pieces, in chunks, cut, endless; addresses that do
// not answer.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/answer_reader.h"
#include "muster/net/http/client.h"
#include "muster/net/http/test_peer.h"
#include "muster/net/tls/certs.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kShortSeconds = 0.1;

const std::string kSeven = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7";
const std::string kChunks =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n2\r\n7]\r\n0\r\n\r\n";

std::unique_ptr<HttpClient> MakeClient(const std::string& url, HttpClientOptions options = {}) {
  options.url = url;
  return HttpClient::Create(std::move(options)).value();
}

// Answers each of so many requests of one connection.
ScriptedServer::Script AnswerEach(std::string answer, int requests) {
  return [answer = std::move(answer), requests](const RawPeer& peer) {
    for (int i = 0; i < requests; ++i) ScriptedServer::Answer(answer)(peer);
  };
}

// Sends `piece` again and again until the client has enough.
ScriptedServer::Script Drip(std::string begin, std::string piece) {
  return [begin = std::move(begin), piece = std::move(piece)](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    bool open = peer.Send(begin);
    while (open && !peer.ClosedWithin(1)) open = peer.Send(piece);
  };
}

bool HasLoopbackV6() {
  const auto listener = internal::ListenOn("::1", 0);
  if (listener.ok()) close(listener->descriptor);
  return listener.ok();
}

TEST(HttpClientWireTest, AnswersInChunksAreReadAndTheConnectionKept) {
  const ScriptedServer server({AnswerEach(kChunks, 3)});
  const auto client = MakeClient(server.url());
  for (int i = 0; i < 3; ++i) {
    const auto answer = client->Get("/x", kTestSeconds);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, Json({7}));
  }
}

TEST(HttpClientWireTest, AnAnswerByteForByteIsOne) {
  const ScriptedServer server({[](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    for (const char c : "HTTP/1.1 100 Continue\r\n\r\n" + kChunks) {
      peer.Send(std::string_view(&c, 1));
      peer.ReadableWithin(1);
    }
  }});
  EXPECT_EQ(MakeClient(server.url())->GetText("/x", kTestSeconds).value(), "[7]");
}

TEST(HttpClientWireTest, AnAnswerWithoutALengthEndsWithItsConnection) {
  const ScriptedServer server(
      {ScriptedServer::Answer("HTTP/1.1 200 OK\r\n\r\nall of it"), ScriptedServer::Answer(kSeven)});
  const auto client = MakeClient(server.url());
  EXPECT_EQ(client->GetText("/x", kTestSeconds).value(), "all of it");
  EXPECT_EQ(client->Get("/x", kTestSeconds).value(), 7);
}

TEST(HttpClientWireTest, AnAnswerCutShortIsNoneAndIsNotAskedForAgain) {
  for (const std::string& answer : {kSeven.substr(0, 10), kSeven.substr(0, kSeven.size() - 1),
                                    kChunks.substr(0, kChunks.size() - 2)}) {
    const ScriptedServer server(
        {[&](const RawPeer& peer) {
           AnswerEach(kSeven, 1)(peer);
           ScriptedServer::Answer(answer)(peer);
         },
         [](const RawPeer&) { ADD_FAILURE() << "the request was sent again"; }});
    const auto client = MakeClient(server.url());
    EXPECT_EQ(client->Get("/x", kTestSeconds).value(), 7);
    const auto cut = client->Get("/x", kTestSeconds);
    EXPECT_TRUE(absl::IsUnavailable(cut.status())) << cut.status();
    EXPECT_THAT(cut.status().ToString(), HasSubstr("cut short"));
  }
}

TEST(HttpClientWireTest, AKeptConnectionThatBreaksBeforeAnAnswerIsMadeAnewOnce) {
  std::atomic<int> broken = 0;
  const auto break_at_second = [&](const RawPeer& peer) {
    ScriptedServer::Answer(kSeven)(peer);
    broken += peer.ReadUntil("\r\n\r\n").empty() ? 0 : 1;
  };
  const auto break_at_first = [&](const RawPeer& peer) {
    broken += peer.ReadUntil("\r\n\r\n").empty() ? 0 : 1;
  };
  const ScriptedServer server({break_at_second, break_at_second, break_at_first});
  const auto client = MakeClient(server.url());
  EXPECT_EQ(client->Get("/1", kTestSeconds).value(), 7);
  const auto second = client->Get("/2", kTestSeconds);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(broken, 1);
  const auto third = client->Get("/3", kTestSeconds);
  EXPECT_TRUE(absl::IsUnavailable(third.status())) << third.status();
  EXPECT_EQ(broken, 3);
}

TEST(HttpClientWireTest, ANewConnectionThatBreaksIsNotMadeAnew) {
  const ScriptedServer server(
      {[](const RawPeer& peer) { peer.ReadUntil("\r\n\r\n"); },
       [](const RawPeer&) { ADD_FAILURE() << "the request was sent again"; }});
  const auto answer = MakeClient(server.url())->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
}

TEST(HttpClientWireTest, BytesAfterAnAnswerAreNoAnswerToTheNextRequest) {
  const std::string eight = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n8";
  const auto says_more = [&](const RawPeer& peer) {
    ScriptedServer::Answer(kSeven + eight)(peer);
    peer.ReadToEnd();
  };
  const ScriptedServer server({says_more, says_more});
  const auto client = MakeClient(server.url());
  EXPECT_EQ(client->Get("/1", kTestSeconds).value(), 7);
  EXPECT_EQ(client->Get("/2", kTestSeconds).value(), 7);
}

TEST(HttpClientWireTest, ARequestIsWhatItShouldBe) {
  std::string asked;
  const auto token = Token::Make().value();
  std::string url;
  {
    const ScriptedServer server({[&](const RawPeer& peer) {
      asked = peer.ReadUntil("{\"a\":1}");
      peer.Send(kSeven);
    }});
    url = server.authority();
    const auto client = MakeClient(StrCat(server.url(), "/base/"), {.token = token});
    EXPECT_EQ(client->Post("/x?y=%20", {{"a", 1}}, kTestSeconds).value(), 7);
  }
  EXPECT_THAT(asked, StartsWith(StrCat("POST /base/x?y=%20 HTTP/1.1\r\nHost: ", url, "\r\n")));
  EXPECT_THAT(asked, AllOf(HasSubstr("\r\nContent-Type: application/json\r\n"),
                           HasSubstr("\r\nContent-Length: 7\r\n"),
                           HasSubstr(StrCat("\r\nAuthorization: Bearer ", token.Reveal(), "\r\n")),
                           EndsWith("\r\n\r\n{\"a\":1}")));
}

TEST(HttpClientWireTest, WhatCouldEndTheRequestsLineIsNotSent) {
  const ScriptedServer server({[](const RawPeer&) { ADD_FAILURE() << "it was sent"; }});
  const auto client = MakeClient(server.url());
  for (const char* target : {"/a b", "/a HTTP/1.1\r\nX: y\r\n\r\n", "", "a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client->Get(target, kTestSeconds).status())) << target;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(client->Call("GET /x", "/x", Json(), kTestSeconds).status()));
}

// The server takes nothing after the header; the sockets do not hold the rest.
TEST(HttpClientWireTest, ARefusalIsHeardWhileTheRequestIsStillBeingSent) {
  std::atomic<bool> heard = false;
  const ScriptedServer server({[&](const RawPeer& peer) {
    ScriptedServer::Answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")(peer);
    EXPECT_TRUE(WaitFor([&] { return heard.load(); }));
  }});
  const auto answer =
      MakeClient(server.url())->Post("/x", std::string(size_t{16} << 20, 'a'), kTestSeconds);
  heard = true;
  EXPECT_THAT(answer.status().ToString(), HasSubstr("HTTP status 413"));
}

TEST(HttpClientWireTest, DripsDoNotMoveTheDeadline) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::vector<ScriptedServer::Script> scripts = {
      Drip(ok + "A: ", "a"), Drip("", "HTTP/1.1 100 Continue\r\n\r\n"),
      Drip(ok + "Content-Length: 1000000\r\n\r\n", "a"),
      Drip(ok + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n7\r\n"), Drip(ok + "\r\n", "a")};
  for (size_t i = 0; i < scripts.size(); ++i) {
    const ScriptedServer server({scripts[i]});
    const auto answer = MakeClient(server.url())->Get("/x", kShortSeconds);
    EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << i << ": " << answer.status();
    EXPECT_THAT(answer.status().ToString(), HasSubstr("came"));
  }
}

TEST(HttpClientWireTest, WhatIsTooMuchIsNotRead) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  std::string chunks;
  for (int i = 0; i < 100; ++i) chunks += "1\r\n7\r\n";
  const std::vector<ScriptedServer::Script> scripts = {
      Drip(ok, StrCat("A: ", std::string(4000, 'a'), "\r\n")),
      Drip(ok + "A: ", std::string(4000, 'a')), Drip(ok + "Content-Length: 1001\r\n\r\n", ""),
      Drip(ok + "\r\n", std::string(400, 'a')),
      Drip(ok + "Transfer-Encoding: chunked\r\n\r\n", chunks)};
  for (size_t i = 0; i < scripts.size(); ++i) {
    const ScriptedServer server({scripts[i]});
    const auto answer =
        MakeClient(server.url(), {.max_answer_bytes = 1000})->Get("/x", kTestSeconds);
    EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << i << ": " << answer.status();
  }
}

TEST(HttpClientWireTest, AnIPv6AddressIsWrittenInBrackets) {
  if (!HasLoopbackV6()) GTEST_SKIP() << "this machine has no ::1";
  const ScriptedServer server({[](const RawPeer& peer) {
                                const std::string asked = peer.ReadUntil("\r\n\r\n");
                                EXPECT_THAT(asked, HasSubstr("\r\nHost: [::1]:"));
                                peer.Send(kSeven);
                              }},
                              "::1");
  EXPECT_THAT(server.url(), StartsWith("http://[::1]:"));
  const auto token = Token::Make().value();
  EXPECT_EQ(MakeClient(server.url(), {.token = token})->Get("/x", kTestSeconds).value(), 7);
}

TEST(HttpClientWireTest, LocalhostIsTheAddressThatAnswers) {
  std::vector<std::string> addresses = {"127.0.0.1"};
  if (HasLoopbackV6()) addresses.push_back("::1");  // then 127.0.0.1 refuses
  for (const std::string& address : addresses) {
    const ScriptedServer server({ScriptedServer::Answer(kSeven)}, address);
    const auto answer =
        MakeClient(StrCat("http://localhost:", server.port()))->Get("/x", kTestSeconds);
    ASSERT_TRUE(answer.ok()) << address << ": " << answer.status();
    EXPECT_EQ(*answer, 7);
  }
  const auto listener = internal::ListenOn("127.0.0.1", 0).value();
  close(listener.descriptor);
  const std::string nobody = StrCat("http://localhost:", listener.port);
  const auto refused = MakeClient(nobody)->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().ToString(),
              AllOf(HasSubstr(StrCat("connect to 127.0.0.1:", listener.port)),
                    HasSubstr(StrCat("; connect to [::1]:", listener.port))));
}

// The resolver takes hexadecimal for an address without asking the network; the URL is a name's.
TEST(HttpClientWireTest, NamesAreLookedUp) {
  const ScriptedServer server({ScriptedServer::Answer(kSeven)});
  EXPECT_EQ(
      MakeClient(StrCat("http://0x7f000001:", server.port()))->Get("/x", kTestSeconds).value(), 7);
  const std::string impossible(64, 'a');  // longer than a name's part may be
  const auto lost = MakeClient(StrCat("http://", impossible, ":1"))->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsUnavailable(lost.status())) << lost.status();
  EXPECT_THAT(lost.status().ToString(), HasSubstr(StrCat("find host '", impossible, "'")));
}

// Listens, and its queue is full: further connections are neither made nor refused.
class FullListener {
 public:
  FullListener() : listener_(internal::ListenOn("127.0.0.1", 0).value()) {
    listen(listener_.descriptor, 0);
    peers_.emplace_back(listener_.port);
  }
  ~FullListener() { close(listener_.descriptor); }
  FullListener(const FullListener&) = delete;
  FullListener& operator=(const FullListener&) = delete;
  std::string url() const { return StrCat("http://127.0.0.1:", listener_.port); }

 private:
  internal::Listener listener_;
  std::vector<RawPeer> peers_;
};

TEST(HttpClientWireTest, ConnectingHasADeadlineOfItsOwn) {
  const FullListener full;
  const auto client = MakeClient(full.url(), {.connect_seconds = kShortSeconds});
  const auto answer = client->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().ToString(), HasSubstr("connect to 127.0.0.1:"));
}

TEST(HttpClientWireTest, CancelEndsConnectingToo) {
  const FullListener full;
  const auto client = MakeClient(full.url(), {.connect_seconds = kTestSeconds});
  std::thread cancelling([&] {
    poll(nullptr, 0, 20);  // before or while it connects: both end the same way
    client->Cancel();
  });
  const auto answer = client->Get("/x", kTestSeconds);
  cancelling.join();
  EXPECT_TRUE(absl::IsCancelled(answer.status())) << answer.status();
}

TEST(HttpClientWireTest, ASilentTlsHandshakeEndsAtConnectingsDeadline) {
  const ScriptedServer server({[](const RawPeer& peer) { peer.ReadToEnd(); }});
  const Credentials authority = MakeAuthority("job", 10).value();
  const auto client = MakeClient(
      StrCat("https://", server.authority()),
      {.tls = ClientTls{.authority = authority.certificate}, .connect_seconds = kShortSeconds});
  const auto answer = client->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().ToString(), HasSubstr("TLS handshake"));
}

// Not under sanitizers, whose own checks want descriptors (UBSan looks at memory through a pipe).
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(HttpClientWireTest, WithoutDescriptorsACallFailsAndTheNextOneWorks) {
  const ScriptedServer server({ScriptedServer::Answer(kSeven)});
  const auto client = MakeClient(server.url());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto failed = client->Get("/x", kTestSeconds);
  const absl::Status made = HttpClient::Create({.url = server.url()}).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(failed.status())) << failed.status();
  EXPECT_THAT(failed.status().ToString(), HasSubstr(StrCat("GET ", server.url(), "/x: ")));
  EXPECT_TRUE(made.ok() || absl::IsResourceExhausted(made)) << made;
  const auto answer = client->Get("/x", kTestSeconds);
  EXPECT_TRUE(answer.ok()) << answer.status();
}
#endif

TEST(HttpClientWireTest, CertificatesThatAreNoneAreRefusedAtOnce) {
  const auto refused = HttpClient::Create(
      {.url = "https://127.0.0.1:1", .tls = ClientTls{.authority = "no certificate"}});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().ToString(), HasSubstr("no PEM certificate"));
}

}  // namespace
}  // namespace muster::net
