#include "muster/files/hdfs/hadoop_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::files {
namespace {

using testing::HasSubstr;

HadoopToken Sample() {
  return {.identifier = std::string("\0\6tester", 8),
          .password = std::string(20, '\xfe'),
          .kind = std::string(kHdfsTokenKind),
          .service = "127.0.0.1:8020"};
}

TEST(HadoopTokenTest, TheTextIsTheFourTextsInBase64) {
  const HadoopToken token = {.identifier = "id", .password = "pw", .kind = "K", .service = "h:1"};
  EXPECT_EQ(PrintTokenText(token), "AmlkAnB3AUsDaDox");
  EXPECT_EQ(ParseTokenText("AmlkAnB3AUsDaDox").value(), token);
  EXPECT_EQ(ParseTokenText(PrintTokenText(Sample())).value(), Sample());
  HadoopToken longer = Sample();
  longer.identifier = std::string(70'000, 'x');
  EXPECT_EQ(ParseTokenText(PrintTokenText(longer)).value(), longer);
}

TEST(HadoopTokenTest, AFileHasTokens) {
  const auto tokens = ParseTokenFile(PrintTokenFile({Sample(), {.kind = "other"}}), "f");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ((*tokens)[0], Sample());
  EXPECT_EQ((*tokens)[1].kind, "other");
}

TEST(HadoopTokenTest, AFileOfProtobufHasTokens) {
  // {tokens {alias: "a" token {identifier: "id" password: "pw" kind: "K" service: "h:1"}}}
  const std::string entry(
      "\x0a\x01"
      "a\x12\x10\x0a\x02id\x12\x02pw\x1a\x01K\x22\x03h:1");
  const std::string whole = std::string("HDTS\x01") + static_cast<char>(entry.size() + 2) + "\x0a" +
                            static_cast<char>(entry.size()) + entry;
  const auto tokens = ParseTokenFile(whole, "f");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 1u);
  EXPECT_EQ(PrintTokenText(tokens->front()), "AmlkAnB3AUsDaDox");
}

TEST(HadoopTokenTest, WhatIsDamagedIsRefusedAndNotRepeated) {
  const std::string whole = PrintTokenFile({Sample()});
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    const auto tokens = ParseTokenFile(whole.substr(0, size), "f");
    ASSERT_FALSE(tokens.ok()) << size;
    EXPECT_THAT(std::string(ToStd(tokens.status().message())), HasSubstr("f: "));
  }
  EXPECT_FALSE(ParseTokenFile(std::string("HDTS\x02", 5), "f").ok());
  EXPECT_FALSE(ParseTokenFile(std::string("HDTS\x01\x7f", 6), "f").ok());
  EXPECT_FALSE(ParseTokenText("////").ok());
  EXPECT_FALSE(ParseTokenText("").ok());
}

}  // namespace
}  // namespace muster::files
