#include "muster/net/http/forwarder.h"

#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/net/http/test_peer.h"
#include "muster/net/http/url.h"

namespace muster::net {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPrefix[] = "/api/proxy";

class HttpForwarderTest : public ::testing::Test {
 protected:
  HttpForwarderTest() {
    auto made = HttpForwarder::Start({.prefix = kPrefix}, [this](const HttpCall& call) {
      const std::lock_guard lock(mutex_);
      std::string body(64, '\0');
      body.resize(call.body == nullptr || !call.body->Restart()
                      ? 0
                      : call.body->Read(body.data(), body.size()).value());
      std::string fields;
      for (const HttpField& field : call.fields) fields += StrCat(" ", field.name);
      calls_.push_back(
          StrCat(call.method, " ", call.target, fields, body.empty() ? "" : " ", body));
      return answer_;
    });
    EXPECT_TRUE(made.ok()) << made.status();
    forwarder_ = *std::move(made);
    const auto url = internal::ParseHttpUrl(forwarder_->url());
    port_ = static_cast<uint16_t>(std::stoi(url->authority.substr(url->authority.find(':') + 1)));
    host_ = StrCat("Host: ", url->authority, "\r\n");
  }
  std::string Ask(const std::string& line, const std::string& fields = "",
                  const std::string& body = "") const {
    const RawPeer peer(port_);
    EXPECT_TRUE(
        peer.Send(StrCat(line, " HTTP/1.1\r\nConnection: close\r\n", host_, fields, "\r\n", body)));
    return peer.ReadToEnd();
  }

  std::mutex mutex_;
  std::vector<std::string> calls_ = {};
  absl::StatusOr<HttpAnswer> answer_ = HttpAnswer{
      .head = {.status = 200, .fields = {{"Content-Type", "text/css"}, {"Set-Cookie", "secret"}}},
      .body = "a{}"};
  std::string host_ = {};
  uint16_t port_ = 0;
  std::unique_ptr<HttpForwarder> forwarder_;
};

TEST_F(HttpForwarderTest, ARequestReachesThePathAndItsAnswerComesBack) {
  EXPECT_THAT(Ask("GET /a%20b/?x=1%26&y", "Accept: */*\r\nAccept-Encoding: gzip\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Type: text/css\r\n"),
                    HasSubstr("\r\n\r\na{}"), Not(HasSubstr("secret"))));
  EXPECT_THAT(calls_, ElementsAre("GET /api/proxy/a%20b/?x=1%26&y Accept Accept-Encoding"));
}

TEST_F(HttpForwarderTest, APostKeepsItsBodyAndWhoeverAskedIsNotPassedOn) {
  EXPECT_THAT(Ask("POST /data",
                  StrCat("Content-Type: multipart/form-data\r\nContent-Length: 4\r\n"
                         "Cookie: a=b\r\nAuthorization: Bearer x\r\nOrigin: http://",
                         host_.substr(6), "Impersonate-User: admin\r\n"),
                  "body"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(calls_, ElementsAre("POST /api/proxy/data Content-Type body"));
}

TEST_F(HttpForwarderTest, APathThatHasThePrefixGetsNoSecondOne) {
  Ask("GET /api/proxy/x");
  Ask("GET /api/proxy?x");
  Ask("GET /api/proxyx");
  EXPECT_THAT(calls_,
              ElementsAre("GET /api/proxy/x", "GET /api/proxy/?x", "GET /api/proxy/api/proxyx"));
  answer_ = HttpAnswer{.head = {.status = 301, .fields = {{"Location", "/api/proxy/y/"}}}};
  EXPECT_THAT(Ask("GET /y"), AllOf(StartsWith("HTTP/1.1 301"), HasSubstr("Location: /y/\r\n")));
}

TEST_F(HttpForwarderTest, NoPathLeadsAboveThePrefix) {
  for (const char* const target : {"/..", "/../x", "/a/../../x", "/%2e%2e/x", "/a/%2E./x",
                                   "/a%2f..%2fx", "/a%5c..%5cx", "/./x", "/api/proxy/../x"}) {
    EXPECT_THAT(Ask(StrCat("GET ", target)), StartsWith("HTTP/1.1 400")) << target;
  }
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_THAT(Ask("GET /a..b/.c"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpForwarderTest, PagesOfOtherOriginsAreRefused) {
  for (const char* const fields :
       {"Origin: http://evil.example\r\n", "Origin: http://127.0.0.1:1\r\n", "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"}) {
    EXPECT_THAT(Ask("GET /x", fields), StartsWith("HTTP/1.1 403")) << fields;
  }
  host_ = "Host: evil.example\r\n";
  EXPECT_THAT(Ask("GET /x"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(HttpForwarderTest, ItsOwnPagesAndLinksToItAreAnswered) {
  for (const char* const fields :
       {"Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"}) {
    EXPECT_THAT(Ask("GET /x", fields), StartsWith("HTTP/1.1 200")) << fields;
  }
}

TEST_F(HttpForwarderTest, AServerThatIsAwayIsSaidSo) {
  answer_ = absl::UnavailableError("nobody listens");
  EXPECT_THAT(Ask("GET /x"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("nobody listens")));
}

TEST_F(HttpForwarderTest, ATakenPortIsRefused) {
  const auto second = HttpForwarder::Start({.port = port_}, {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

}  // namespace
}  // namespace muster::net
