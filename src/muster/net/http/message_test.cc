#include "muster/net/http/message.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(HttpMessageTest, EveryErrorCrossesWithItsCodeAndMessage) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent(static_cast<absl::StatusCode>(code), "why: \"x\"\n\xc3\xa4");
    const HttpResponse response = ErrorResponse(sent);
    EXPECT_GE(response.status, 400);
    EXPECT_EQ(ParseErrorResponse(response.status, response.body), sent);
  }
}

TEST(HttpMessageTest, AnswersOfOthersBecomeErrorsToo) {
  EXPECT_TRUE(ParseErrorResponse(204, "").ok());
  EXPECT_TRUE(absl::IsNotFound(ParseErrorResponse(404, "<html>")));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseErrorResponse(418, "[1]")));
  EXPECT_TRUE(absl::IsUnavailable(ParseErrorResponse(502, R"({"error": "text"})")));
  EXPECT_TRUE(
      absl::IsInternal(ParseErrorResponse(599, R"({"error": {"code": "OK", "message": 7}})")));
}

TEST(HttpMessageTest, BytesThatAreNoUtf8DoNotBreakAnAnswer) {
  const HttpResponse response = ErrorResponse(absl::InternalError("\xff"));
  EXPECT_TRUE(ParseJson(response.body, "x").ok());
}

TEST(HttpMessageTest, TargetsAreCutBeforeTheyAreDecoded) {
  const auto target = ParseTarget("/v1//a%2Fb/?x=1%262&x=3&&y&=z&w=a+b");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->segments, ElementsAre("v1", "", "a/b"));
  EXPECT_THAT(target->query,
              UnorderedElementsAre(Pair("x", "3"), Pair("y", ""), Pair("", "z"), Pair("w", "a b")));
  EXPECT_EQ(target->path, "/v1//a%2Fb/");
  EXPECT_TRUE(ParseTarget("/")->segments.empty());
  for (const char* bad : {"", "*", "http://x/", "/%", "/%a", "/%g0", "/a?b=%0a", "/\x01"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTarget(bad).status())) << bad;
  }
}

TEST(HttpMessageTest, WhatIsEscapedIsDecodedAgain) {
  std::string text = "a/b?c&d=e+f %\"";
  text += "\xc3\xa4";
  const auto target = ParseTarget(StrCat("/", EscapeForTarget(text), "?q=", EscapeForTarget(text)));
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->segments, ElementsAre(text));
  EXPECT_EQ(target->query.at("q"), text);
}

TEST(HttpMessageTest, JsonHasADepth) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(ParseJson(nested(64), "body").ok());
  EXPECT_THAT(ParseJson(nested(65), "body").status().ToString(), HasSubstr("body: byte 64: more"));
  EXPECT_TRUE(ParseJson("[\"" + std::string(100, '[') + "\\\"[\"]", "body").ok());
}

TEST(HttpMessageTest, AResponseSaysHowLongItIs) {
  HttpResponse response = TextResponse("abc", 405);
  response.fields["Allow"] = "GET";
  const std::string bytes = SerializeResponse(response, false);
  EXPECT_THAT(bytes, HasSubstr("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nContent-Length: 3\r\nConnection: close\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nAllow: GET\r\n\r\nabc"));
}

}  // namespace
}  // namespace muster::net
