// Whom an exchange believes and how it proves itself: authorities, certificates, bearer tokens.
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/exchange_test_peer.h"
#include "muster/net/secret_file.h"
#include "muster/net/tls/certs.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HttpExchangeTrustTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "trust-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    authority_ = MakeAuthority("cluster", 10).value();
    foreign_ = MakeAuthority("foreign", 10).value();
    server_ = MakeCertificate(authority_, {.name = "api", .hosts = {"127.0.0.1"}}).value();
    client_ =
        MakeCertificate(authority_, {.name = "operator", .use = CertificateUse::kClient}).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<HttpServer> Serve(std::string client_authority = {}) const {
    HttpServerOptions options;
    options.tls = ServerTls{.certificate = server_.certificate,
                            .key = server_.key,
                            .client_authority = std::move(client_authority)};
    return StartServer(
        {{"GET", "/x", [](const HttpRequest&, const HttpReply& reply) { reply.SendJson(7); }}},
        std::move(options));
  }

  static absl::StatusOr<HttpAnswer> Ask(const HttpServer& server, const ClientTls& tls) {
    const auto pool = HttpPool::Create({.tls = tls});
    EXPECT_TRUE(pool.ok()) << pool.status();
    if (!pool.ok()) return pool.status();
    return FetchFrom(*ExchangeWith(server.url(), {.pool = *pool}), GetCall("/x"));
  }

  std::string folder_;
  Credentials authority_;
  Credentials foreign_;
  Credentials server_;
  Credentials client_;
};

TEST_F(HttpExchangeTrustTest, AGivenAuthorityIsTheOnlyOneThatIsTrusted) {
  const auto server = Serve();
  const auto answer = Ask(*server, {.authority = authority_.certificate});
  EXPECT_TRUE(answer.ok()) << answer.status();
  const absl::Status foreign = Ask(*server, {.authority = foreign_.certificate}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(foreign)) << foreign;
  EXPECT_THAT(foreign.ToString(), HasSubstr("of an authority that is trusted here?"));
  // While an authority is being replaced, a file holds both.
  const auto both = Ask(*server, {.authority = foreign_.certificate + authority_.certificate});
  EXPECT_TRUE(both.ok()) << both.status();
}

TEST_F(HttpExchangeTrustTest, TheMachinesAuthoritiesAreThoseOfItsEnvironment) {
  const auto server = Serve();
  const ClientTls machine = {.machine_authorities = true};
  const std::string file = folder_ + "/ca.pem";
  std::ofstream(file) << authority_.certificate;
  const absl::Status unknown = Ask(*server, machine).status();
  ASSERT_EQ(setenv("SSL_CERT_FILE", file.c_str(), 1), 0);
  const auto answer = Ask(*server, machine);
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(absl::IsUnauthenticated(unknown)) << unknown;
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(HttpExchangeTrustTest, AServerMayAskForAClientsCertificate) {
  const auto server = Serve(authority_.certificate);
  ClientTls tls = {.authority = authority_.certificate};
  const absl::Status without = Ask(*server, tls).status();
  EXPECT_TRUE(absl::IsUnauthenticated(without)) << without;
  tls.certificate = client_.certificate;
  tls.key = client_.key;
  const auto answer = Ask(*server, tls);
  EXPECT_TRUE(answer.ok()) << answer.status();
  const Credentials forged =
      MakeCertificate(foreign_, {.name = "operator", .use = CertificateUse::kClient}).value();
  tls.certificate = forged.certificate;
  tls.key = forged.key;
  EXPECT_FALSE(Ask(*server, tls).ok());
  EXPECT_EQ(server->counters().requests, 1u);
}

TEST_F(HttpExchangeTrustTest, ConnectionsWithTlsAreKeptToo) {
  const auto server = Serve();
  const auto pool = HttpPool::Create(
      {.tls = ClientTls{.authority = authority_.certificate, .allow_tls_1_2 = true}});
  ASSERT_TRUE(pool.ok()) << pool.status();
  const auto exchange = ExchangeWith(server->url(), {.pool = *pool});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(FetchFrom(*exchange, GetCall("/x"))->body, "7\n");
  EXPECT_EQ(server->counters().accepted, 1u);
}

TEST_F(HttpExchangeTrustTest, TrustMustBeChosen) {
  const auto create = [](ClientTls tls) {
    return HttpPool::Create({.tls = std::move(tls)}).status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(create({})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      create({.authority = authority_.certificate, .machine_authorities = true})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.authority = "no certificate"})));
  const absl::Status no_tls = HttpExchange::Create({.url = "https://127.0.0.1:1"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_tls)) << no_tls;
}

TEST_F(HttpExchangeTrustTest, ATokenIsSentOnlyWhereItCannotBeRead) {
  const auto token = BearerToken::FromText("secret", "a test").value();
  const absl::Status plain =
      HttpExchange::Create({.url = "http://api.example:80", .token = token}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(plain)) << plain;
  EXPECT_THAT(plain.ToString(), AllOf(HasSubstr("use https"), Not(HasSubstr("secret"))));
  EXPECT_TRUE(HttpExchange::Create({.url = "http://127.0.0.1:80", .token = token}).ok());
}

TEST_F(HttpExchangeTrustTest, ATokensFileIsReadAnewForEachCall) {
  std::vector<std::string> asked;
  const ScriptedServer server({[&](const RawPeer& peer) {
    for (int i = 0; i < 2; ++i) {
      asked.push_back(peer.ReadUntil("\r\n\r\n"));
      peer.Send(SizedAnswer("7"));
    }
  }});
  const std::string path = folder_ + "/token";
  const auto exchange = ExchangeWith(server.url(), {.token = BearerToken::FromMountedFile(path)});
  for (const char* token : {"first.token", "other.token"}) {
    ASSERT_TRUE(WriteSecretFile(path, StrCat(token, "\n")).ok());
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);  // as in a pod
    const auto answer = FetchFrom(*exchange, GetCall("/x"));
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_THAT(asked[0], HasSubstr("\r\nAuthorization: Bearer first.token\r\n"));
  EXPECT_THAT(asked[1], HasSubstr("\r\nAuthorization: Bearer other.token\r\n"));

  ASSERT_EQ(unlink(path.c_str()), 0);
  const absl::Status lost = FetchFrom(*exchange, GetCall("/x")).status();
  EXPECT_TRUE(absl::IsNotFound(lost)) << lost;
  EXPECT_THAT(lost.ToString(), HasSubstr(path));
}

}  // namespace
}  // namespace muster::net
