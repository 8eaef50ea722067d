#include "muster/net/http/url.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpUrlTest, PartsAreCut) {
  const HttpUrl plain = ParseHttpUrl("http://chief-0.example:4242").value();
  EXPECT_FALSE(plain.is_tls);
  EXPECT_EQ(plain.host, "chief-0.example");
  EXPECT_EQ(plain.port, 4242);
  EXPECT_EQ(plain.authority, "chief-0.example:4242");
  EXPECT_EQ(plain.path, "");
  EXPECT_FALSE(plain.is_numeric);
  const HttpUrl v6 = ParseHttpUrl("HTTPS://[2001:db8::1]:7000/muster//").value();
  EXPECT_TRUE(v6.is_tls && v6.is_numeric && !v6.is_loopback);
  EXPECT_EQ(v6.host, "2001:db8::1");
  EXPECT_EQ(v6.port, 7000);
  EXPECT_EQ(v6.authority, "[2001:db8::1]:7000");
  EXPECT_EQ(v6.path, "/muster");
  EXPECT_EQ(v6.base, "HTTPS://[2001:db8::1]:7000/muster");
  EXPECT_EQ(ParseHttpUrl("http://a_b")->port, 80);
  EXPECT_EQ(ParseHttpUrl("https://[::1]/")->port, 443);
}

TEST(HttpUrlTest, ThisMachineIsKnownByItsNumbersAndLocalhost) {
  for (const char* url : {"http://127.0.0.1", "http://127.8.9.10:1", "http://localhost:80",
                          "http://LocalHost", "http://[::1]:80"}) {
    EXPECT_TRUE(ParseHttpUrl(url)->is_loopback) << url;
  }
  for (const char* url : {"http://127.0.0.1.example", "http://localhost.example", "http://10.0.0.1",
                          "http://[::2]", "http://[::ffff:10.0.0.1]", "http://localhost.:80"}) {
    EXPECT_FALSE(ParseHttpUrl(url)->is_loopback) << url;
  }
}

TEST(HttpUrlTest, WhatIsNoneIsRefusedAndNotRepeated) {
  for (const char* url : {"",
                          "secret",
                          "http:",
                          "http://",
                          "http:///secret",
                          "http://:80",
                          "http://secret:",
                          "http://secret:0",
                          "http://secret:65536",
                          "http://secret:80a",
                          "http://secret:+80",
                          "http://secret:-80",
                          "http://[::1",
                          "http://[::1]80",
                          "http://[127.0.0.1]",
                          "http://::1",
                          "http://[secret]",
                          "http://127.1",
                          "http://1.2.3.4.5",
                          "http://256.0.0.1",
                          "http://2130706433",
                          "http://se cret",
                          "http://secret\r\nX: y",
                          "http://a@secret",
                          "http://a/?secret",
                          "http://a/#secret",
                          "ftp://secret",
                          "http://s\xc3\xa4"}) {
    const absl::Status status = ParseHttpUrl(url).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url << ": " << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("secret")));
  }
}

TEST(HttpUrlTest, TargetsThatWouldEndTheLineAreNotSent) {
  EXPECT_TRUE(IsSendable("/v1/jobs?wait=5&x=%20\xc3\xa4"));
  for (const std::string target : {"/a b", "/a\r\nX: y", "/a\n", "/\t", "/\x7f"}) {
    EXPECT_FALSE(IsSendable(target)) << target;
  }
  EXPECT_FALSE(IsSendable(std::string_view("/\0", 2)));
}

}  // namespace
}  // namespace muster::net::internal
