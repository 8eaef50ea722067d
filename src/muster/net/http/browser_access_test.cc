// A browser reads from a server that has a token: by a URL with the derived key, then by a cookie.
#include "muster/net/http/browser_access.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BrowserAccessTest : public ::testing::Test {
 protected:
  BrowserAccessTest() {
    HttpServerOptions options;
    options.token = token_;
    options.browsers = true;
    const auto answer = [](const HttpRequest& request, const HttpReply& reply) {
      reply.SendJson(Json(request.query));
    };
    server_ = StartServer({{"GET", "/page", answer}, {"POST", "/act", answer}}, options);
    const std::string url = server_->BrowserUrl("/page?a=1");
    key_ = url.substr(url.rfind("token=") + 6);
  }
  std::string Ask(std::string_view method, std::string_view target, std::string_view fields) const {
    const RawPeer peer(server_->port());
    EXPECT_TRUE(
        peer.Send(StrCat(method, " ", target,
                         " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", fields, "\r\n")));
    return peer.ReadToEnd();
  }
  std::string Cookie(std::string_view value) const {
    return StrCat("Cookie: other=1; muster-", server_->port(), "=", value, "\r\n");
  }

  const Token token_ = Token::Make().value();
  std::unique_ptr<HttpServer> server_;
  std::string key_;
};

TEST_F(BrowserAccessTest, TheKeyGoesFromTheUrlIntoACookieByOneRedirect) {
  ASSERT_THAT(server_->BrowserUrl("/page"), StartsWith("http://127.0.0.1:"));
  const std::string answer = Ask("GET", StrCat("/page?a=1&token=", key_, "&b=2"), "");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 303"));
  EXPECT_THAT(answer, HasSubstr("Location: /page?a=1&b=2\r\n"));
  EXPECT_THAT(answer, HasSubstr(StrCat("Set-Cookie: muster-", server_->port(), "=", key_,
                                       "; Path=/; HttpOnly; SameSite=Strict\r\n")));
  EXPECT_THAT(answer, AllOf(HasSubstr("Cache-Control: no-store"),
                            HasSubstr("Referrer-Policy: no-referrer")));
  const std::string page = Ask("GET", "/page?a=1&b=2", Cookie(key_));
  EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("{\"a\":\"1\",\"b\":\"2\"}")));
}

TEST_F(BrowserAccessTest, TheKeyIsNotTheTokenAndOnlyReads) {
  EXPECT_NE(key_, token_.Reveal());
  EXPECT_THAT(Ask("POST", "/act", Cookie(key_)), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask("POST", StrCat("/act?token=", key_), ""), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask("GET", "/page", StrCat("Authorization: Bearer ", key_, "\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask("GET", "/page", StrCat(Cookie(key_), "Content-Length: 2\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask("GET", StrCat("/page?token=", token_.Reveal()), ""), StartsWith("HTTP/1.1 401"));
}

TEST_F(BrowserAccessTest, WrongKeysAndCookiesAreRefusedAndCounted) {
  const std::string other = Token::Make()->Reveal();
  for (const std::string& target : {StrCat("/page?token=", other), std::string("/page?token="),
                                    StrCat("//evil.example/?token=", key_)}) {
    const std::string answer = Ask("GET", target, "");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401")) << target;
    EXPECT_THAT(answer, AllOf(Not(HasSubstr(other)), Not(HasSubstr(key_)),
                              Not(HasSubstr(token_.Reveal()))));
  }
  EXPECT_THAT(Ask("GET", "/page", Cookie(other)), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask("GET", "/page", StrCat("Cookie: muster-1=", key_, "\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(server_->counters().wrong_tokens, 5U);
  EXPECT_EQ(server_->counters().requests, 0U);
}

TEST_F(BrowserAccessTest, AnotherSitesPageReadsNothing) {
  for (const char* const site : {"cross-site", "same-site"}) {
    EXPECT_THAT(Ask("GET", "/page", StrCat(Cookie(key_), "Sec-Fetch-Site: ", site, "\r\n")),
                StartsWith("HTTP/1.1 401"))
        << site;
  }
  for (const char* const site : {"same-origin", "none"}) {
    EXPECT_THAT(Ask("GET", "/page", StrCat(Cookie(key_), "Sec-Fetch-Site: ", site, "\r\n")),
                StartsWith("HTTP/1.1 200"))
        << site;
  }
}

TEST_F(BrowserAccessTest, WhatIsNotThereIsSaidWithoutTheQuery) {
  const std::string answer = Ask("GET", "/nothing?secret=1", Cookie(key_));
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 404"), Not(HasSubstr("secret"))));
}

TEST(BrowserAccessOptionsTest, AServerThatWasNotToldToHasNoBrowsers) {
  HttpServerOptions options;
  options.browsers = true;
  EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Start(options, {}).status())) << "no token";
  options.token = Token::Make().value();
  options.browsers = false;
  const auto server = StartServer({}, options);
  const std::string key = options.token->Derive("muster browser key 1").Reveal();
  const RawPeer peer(server->port());
  EXPECT_TRUE(peer.Send(StrCat("GET /?token=", key, " HTTP/1.1\r\nConnection: close\r\n\r\n")));
  EXPECT_THAT(peer.ReadToEnd(), StartsWith("HTTP/1.1 401"));
}

}  // namespace
}  // namespace muster::net
