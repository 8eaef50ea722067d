#include "muster/data/kafka/kafka_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/strings.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(KafkaNameTest, ATopic) {
  const auto name = ParseKafkaName("kafka://a:9092,b/clicks.v2");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->brokers, "a:9092,b");
  EXPECT_EQ(name->topic, "clicks.v2");
  EXPECT_FALSE(name->is_fixed());
  EXPECT_EQ(PrintKafkaName(*name), "kafka://a:9092,b/clicks.v2");
}

TEST(KafkaNameTest, RangesAreOrderedByPartition) {
  const auto name = ParseKafkaName("kafka://a/t?chunk=400&ranges=10:5-5,2:100-2000");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_THAT(name->ranges, ElementsAre(OffsetRange{2, 100, 2000}, OffsetRange{10, 5, 5}));
  EXPECT_EQ(name->chunk, 400);
  EXPECT_EQ(PrintKafkaName(*name), "kafka://a/t?ranges=2:100-2000,10:5-5&chunk=400");
  EXPECT_EQ(*ParseKafkaName(PrintKafkaName(*name)), *name);
}

TEST(KafkaNameTest, PartsOfAMessageAreColumns) {
  const std::string text =
      "kafka://a/t?key=user&timestamp=at&header.source=from&header.a.b=ab&compacted=allow"
      "&ranges=0:1-2&chunk=7";
  const auto name = ParseKafkaName(text);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_THAT(name->columns.Names(), ElementsAre("user", "at", "from", "ab"));
  EXPECT_EQ(name->columns.headers[1].first, "a.b");
  EXPECT_TRUE(name->may_be_compacted);
  EXPECT_EQ(PrintKafkaName(*name), text);
}

TEST(KafkaNameTest, WhatIsWrongIsNamed) {
  const auto error = [](std::string_view text) {
    return std::string(ParseKafkaName(text).status().message());
  };
  for (const char* const text : {"kafka://", "kafka://a", "kafka://a/", "kafka:///t", "a/t", ""}) {
    EXPECT_THAT(error(text), HasSubstr("expected kafka://BROKER:9092,BROKER:9092/TOPIC")) << text;
  }
  EXPECT_THAT(error("kafka://a/t/u"), HasSubstr("'t/u' is no name of a topic"));
  EXPECT_THAT(error("kafka://a/.."), HasSubstr("'..' is no name of a topic"));
  EXPECT_THAT(error("kafka://a/t?range=0:1-2"), HasSubstr("'range=0:1-2' is no setting"));
  EXPECT_THAT(error("kafka://a/t?chunk=0"), HasSubstr("at least 1"));
  EXPECT_THAT(error("kafka://a/t?compacted=yes"), HasSubstr("expected compacted=allow"));
  EXPECT_THAT(error("kafka://a/t?key=x&header.h=x"), HasSubstr("two columns are named 'x'"));
  for (const char* const setting : {"key=", "key=a&key=b", "header.=a", "headers.a=a"}) {
    EXPECT_THAT(error(StrCat("kafka://a/t?", setting)), HasSubstr("is no setting")) << setting;
  }
  for (const char* const ranges : {"", "0", "0:1", "0:2-1", "-1:0-1", "0:1-2,0:2-3", "0:a-2",
                                   "0-1:2", "0:1-2,", "0:0-9223372036854775808"}) {
    EXPECT_THAT(error(StrCat("kafka://a/t?ranges=", ranges)), HasSubstr("each partition once"))
        << ranges;
  }
}

}  // namespace
}  // namespace muster::data
