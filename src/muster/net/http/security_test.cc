// Who is let in: tokens, addresses, TLS.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"
#include "muster/net/tls/certs.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HttpRoute Ok() {
  return {"GET", "/x", [](const HttpRequest&, const HttpReply& reply) { reply.SendJson(true); }};
}

Token NewToken() { return Token::Make().value(); }

std::string Ask(const HttpServer& server, std::string_view fields) {
  const RawPeer peer(server.port());
  EXPECT_TRUE(peer.Send(StrCat("GET /x HTTP/1.1\r\nConnection: close\r\n", fields, "\r\n")));
  return peer.ReadToEnd();
}

TEST(HttpSecurityTest, OnlyTheRightTokenGetsIn) {
  const Token token = NewToken();
  HttpServerOptions options;
  options.token = token;
  const auto server = StartServer({Ok()}, options);
  EXPECT_TRUE(MakeClient(*server, {.token = token})->Get("/x", kTestSeconds).ok());
  const Token other = NewToken();
  for (const std::optional<Token>& wrong : {std::optional<Token>(), std::optional<Token>(other)}) {
    const auto refused = MakeClient(*server, {.token = wrong})->Get("/x", kTestSeconds);
    EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().ToString(),
                AllOf(Not(HasSubstr(other.Reveal())), Not(HasSubstr(token.Reveal()))));
  }
  EXPECT_THAT(Ask(*server, ""),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer\r\n")));
  const std::string right = StrCat("Authorization: Bearer ", token.Reveal(), "\r\n");
  EXPECT_THAT(Ask(*server, right), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(*server, StrCat(right, "Authorization: Bearer 0\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask(*server, StrCat("Authorization: Basic ", token.Reveal(), "\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(server->counters().wrong_tokens, 5u);
  EXPECT_EQ(server->counters().requests, 2u);
}

TEST(HttpSecurityTest, WrongTokensAreSlowedAndTheRightOneIsNot) {
  const Token token = NewToken();
  HttpServerOptions options;
  options.token = token;
  options.limits.wrong_tokens_per_second = 0;
  const auto server = StartServer({Ok()}, options);
  EXPECT_THAT(Ask(*server, "Authorization: Bearer 0\r\n"), StartsWith("HTTP/1.1 429"));
  EXPECT_TRUE(MakeClient(*server, {.token = token})->Get("/x", kTestSeconds).ok());
}

TEST(HttpSecurityTest, AStrangersBodyIsNotRead) {
  HttpServerOptions options;
  options.token = NewToken();
  const auto server = StartServer({Ok()}, options);
  EXPECT_THAT(Ask(*server, "Content-Length: 1000000\r\n"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask(*server, "Content-Length: 1000000\r\nExpect: 100-continue\r\n"),
              StartsWith("HTTP/1.1 401"));
}

TEST(HttpSecurityTest, WithoutATokenWebPagesAreRefused) {
  const auto server = StartServer({Ok()});
  for (const char* host : {"localhost:80", "127.0.0.1", "LocalHost", "[::1]:80"}) {
    EXPECT_THAT(Ask(*server, StrCat("Host: ", host, "\r\n")), StartsWith("HTTP/1.1 200")) << host;
  }
  for (const char* fields :
       {"Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n", "Host: [\r\n", "",
        "Host: localhost\r\nOrigin: http://evil.example\r\n"}) {
    EXPECT_THAT(Ask(*server, fields), StartsWith("HTTP/1.1 403")) << fields;
  }
}

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    authority_ = MakeAuthority("job", 10).value();
    server_ = MakeCertificate(authority_, {.name = "job", .hosts = {"127.0.0.1"}}).value();
    client_ = MakeCertificate(authority_, {.name = "job", .use = CertificateUse::kClient}).value();
  }

  HttpServerOptions Options() const {
    HttpServerOptions options;
    options.token = token_;
    options.tls = ServerTls{.certificate = server_.certificate, .key = server_.key};
    return options;
  }
  HttpClientOptions Believing(const std::string& authority) const {
    return {.token = token_, .tls = ClientTls{.authority = authority}};
  }

  const Token token_ = NewToken();
  Credentials authority_;
  Credentials server_;
  Credentials client_;
};

TEST_F(TlsTest, TheJobsOwnAreLetThrough) {
  const auto server = StartServer({Ok()}, Options());
  const auto client = MakeClient(*server, Believing(authority_.certificate));
  EXPECT_THAT(server->url(), StartsWith("https://127.0.0.1:"));
  for (int i = 0; i < 3; ++i) {
    const auto answer = client->Get("/x", kTestSeconds);
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
  EXPECT_EQ(server->counters().accepted, 1u);
}

TEST_F(TlsTest, AForeignAuthorityIsRefused) {
  const auto server = StartServer({Ok()}, Options());
  const Credentials foreign = MakeAuthority("job", 10).value();
  const auto answer = MakeClient(*server, Believing(foreign.certificate))->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().ToString(), HasSubstr("is this server of the same job"));
  EXPECT_EQ(server->counters().requests, 0u);
  EXPECT_EQ(server->counters().wrong_tokens, 0u) << "the token was not sent";
}

TEST_F(TlsTest, AnotherNameIsRefused) {
  server_ = MakeCertificate(authority_, {.name = "job", .hosts = {"other.example"}}).value();
  const auto server = StartServer({Ok()}, Options());
  const auto answer =
      MakeClient(*server, Believing(authority_.certificate))->Get("/x", kTestSeconds);
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status())) << answer.status();
}

TEST_F(TlsTest, AClientsCertificateServesNoServer) {
  server_ = client_;
  const auto server = StartServer({Ok()}, Options());
  const auto answer =
      MakeClient(*server, Believing(authority_.certificate))->Get("/x", kTestSeconds);
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(server->counters().requests, 0u);
}

TEST_F(TlsTest, ClientsMayHaveToShowACertificateToo) {
  HttpServerOptions options = Options();
  options.tls->client_authority = authority_.certificate;
  const auto server = StartServer({Ok()}, options);
  const auto without = MakeClient(*server, Believing(authority_.certificate));
  EXPECT_FALSE(without->Get("/x", kTestSeconds).ok());
  const Credentials foreign = MakeAuthority("job", 10).value();
  const Credentials forged =
      MakeCertificate(foreign, {.name = "job", .use = CertificateUse::kClient}).value();
  HttpClientOptions showing = Believing(authority_.certificate);
  showing.tls->certificate = forged.certificate;
  showing.tls->key = forged.key;
  EXPECT_FALSE(MakeClient(*server, showing)->Get("/x", kTestSeconds).ok());
  EXPECT_EQ(server->counters().requests, 0u);
  showing.tls->certificate = client_.certificate;
  showing.tls->key = client_.key;
  const auto answer = MakeClient(*server, showing)->Get("/x", kTestSeconds);
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(TlsTest, PlainAndTlsDoNotMeet) {
  HttpServerOptions options = Options();
  options.limits.header_seconds = 5;
  const auto server = StartServer({Ok()}, options);
  HttpClientOptions plain = {.url = StrCat("http://127.0.0.1:", server->port())};
  EXPECT_FALSE(MakeClient(*server, plain)->Get("/x", kTestSeconds).ok());
  const auto plain_server = StartServer({Ok()});
  HttpClientOptions secret = Believing(authority_.certificate);
  secret.url = StrCat("https://127.0.0.1:", plain_server->port());
  EXPECT_TRUE(
      absl::IsUnavailable(MakeClient(*plain_server, secret)->Get("/x", kTestSeconds).status()));
}

TEST_F(TlsTest, ASilentHandshakeEndsAtItsDeadline) {
  HttpServerOptions options = Options();
  options.limits.header_seconds = 0.1;
  const auto server = StartServer({Ok()}, options);
  const RawPeer silent(server->port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(WaitFor([&] { return server->counters().timed_out == 1; }));
}

TEST_F(TlsTest, BeyondLoopbackBothAreWanted) {
  for (const char* address : {"0.0.0.0", "::", "192.0.2.1"}) {
    HttpServerOptions options;
    options.address = address;
    const absl::Status neither = HttpServer::Start(options, {}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(neither)) << neither;
    EXPECT_THAT(neither.ToString(), AllOf(HasSubstr("the token and a certificate"),
                                          HasSubstr("muster certs"), HasSubstr("127.0.0.1")));
    options.token = token_;
    EXPECT_TRUE(absl::IsFailedPrecondition(HttpServer::Start(options, {}).status()));
    options.tls = Options().tls;
    options.token.reset();
    EXPECT_TRUE(absl::IsFailedPrecondition(HttpServer::Start(options, {}).status()));
  }
  HttpServerOptions both = Options();
  both.address = "0.0.0.0";
  EXPECT_TRUE(HttpServer::Start(both, {}).ok());
}

TEST_F(TlsTest, BadCertificatesAreRefusedAtTheStart) {
  HttpServerOptions options = Options();
  options.tls->key = client_.key;
  const absl::Status other_key = HttpServer::Start(options, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(other_key));
  EXPECT_THAT(other_key.ToString(), HasSubstr("no PEM key of its certificate"));
  options.tls->certificate = "x";
  EXPECT_THAT(HttpServer::Start(options, {}).status().ToString(), HasSubstr("no PEM certificate"));
}

}  // namespace
}  // namespace muster::net
