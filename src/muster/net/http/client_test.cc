#include "muster/net/http/client.h"

#include <stdlib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<HttpClient> MakeClient(HttpClientOptions options) {
  return HttpClient::Create(std::move(options)).value();
}

TEST(HttpClientTest, NobodyListeningIsUnavailableAndNamesTheUrl) {
  const auto listener = internal::ListenOn("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok());
  close(listener->descriptor);
  const std::string url = StrCat("http://127.0.0.1:", listener->port);
  const Token token = Token::Make().value();
  const auto answer = MakeClient({.url = url, .token = token})->Get("/x?a=b", kTestSeconds);
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()), StartsWith(StrCat("GET ", url, "/x?a=b: ")));
  EXPECT_THAT(answer.status().ToString(), Not(HasSubstr(token.Reveal())));
}

TEST(HttpClientTest, TimeRunsOut) {
  std::vector<HttpReply> kept;  // io thread only
  const auto server = StartServer(
      {{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) { kept.push_back(reply); }}});
  const auto answer = MakeClient(*server)->Get("/x", 0.05);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  server->Stop();
}

TEST(HttpClientTest, CancelEndsACallInProgressAndLaterOnes) {
  std::vector<HttpReply> kept;  // io thread only
  const auto server = StartServer(
      {{"GET", "/x", [&](const HttpRequest&, const HttpReply& reply) { kept.push_back(reply); }}});
  const auto client = MakeClient(*server);
  std::thread cancelling([&] {
    EXPECT_TRUE(WaitFor([&] { return server->counters().requests == 1; }));
    client->Cancel();
  });
  const auto answer = client->Get("/x", kTestSeconds);
  cancelling.join();
  EXPECT_TRUE(absl::IsCancelled(answer.status())) << answer.status();
  EXPECT_TRUE(absl::IsCancelled(client->Get("/x", kTestSeconds).status()));
  server->Stop();
}

TEST(HttpClientTest, BrokenAnswersAreErrors) {
  struct Case {
    std::string answer = {};
    absl::StatusCode code = {};
    std::string message = {};
  };
  const std::vector<Case> cases = {
      {"", absl::StatusCode::kUnavailable, "Empty reply"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1", absl::StatusCode::kUnavailable, ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[1", absl::StatusCode::kInternal, "no JSON"},
      {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nfoo", absl::StatusCode::kUnavailable,
       "HTTP status 502"},
      {"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
       absl::StatusCode::kInvalidArgument, "HTTP status 302"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, ' '),
       absl::StatusCode::kResourceExhausted, "more than the 1000 bytes"}};
  for (const Case& test : cases) {
    const ScriptedServer server({ScriptedServer::Answer(test.answer)});
    const auto client = MakeClient({.url = server.url(), .max_answer_bytes = 1000});
    const auto answer = client->Get("/x", kTestSeconds);
    EXPECT_EQ(answer.status().code(), test.code) << test.answer << "\n" << answer.status();
    EXPECT_THAT(answer.status().ToString(), HasSubstr(test.message));
    EXPECT_THAT(answer.status().ToString(), HasSubstr(server.url()));
  }
}

TEST(HttpClientTest, AnEmptyAnswerIsNull) {
  const ScriptedServer server({ScriptedServer::Answer("HTTP/1.1 204 No Content\r\n\r\n")});
  const auto answer = MakeClient({.url = server.url()})->Get("/x", kTestSeconds);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->is_null());
}

TEST(HttpClientTest, AConnectionThatTheServerClosedIsMadeAnew) {
  HttpServerOptions options;
  options.limits.idle_seconds = 0.01;
  const auto server = StartServer(
      {{"POST", "/x",
        [](const HttpRequest& request, const HttpReply& reply) { reply.SendJson(request.body); }}},
      options);
  const auto client = MakeClient(*server);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(client->Post("/x", i, kTestSeconds).value(), i);
    EXPECT_TRUE(WaitFor([&] { return server->counters().open_others == 0; }));
  }
  EXPECT_EQ(server->counters().accepted, 3u);
}

TEST(HttpClientTest, SecretsAndUrlsAreChecked) {
  const auto create = [](HttpClientOptions options) {
    return HttpClient::Create(std::move(options)).status();
  };
  const Token token = Token::Make().value();
  const absl::Status plain = create({.url = "http://chief-0.example:80", .token = token});
  EXPECT_TRUE(absl::IsFailedPrecondition(plain));
  EXPECT_THAT(plain.ToString(), HasSubstr("readable for all; use https"));
  EXPECT_TRUE(create({.url = "http://127.0.0.1.example:80", .token = token}).code() ==
              absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(create({.url = "https://chief-0.example:80", .token = token}).ToString(),
              HasSubstr("the job's own authority"));
  for (const char* url : {"ftp://127.0.0.1", "http://me:secret@127.0.0.1", "", "127.0.0.1:80",
                          "http://127.0.0.1/?token=secret", "file:///etc/passwd"}) {
    const absl::Status status = create({.url = url});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url << ": " << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
  }
}

TEST(HttpClientTest, TheEnvironmentsProxyIsNotAsked) {
  ASSERT_EQ(setenv("http_proxy", "http://192.0.2.1:1", 1), 0);
  const ScriptedServer server(
      {ScriptedServer::Answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")});
  const auto answer = MakeClient({.url = server.url()})->Get("/x", kTestSeconds);
  unsetenv("http_proxy");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, 7);
}

}  // namespace
}  // namespace muster::net
