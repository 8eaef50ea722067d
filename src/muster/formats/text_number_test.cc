#include "muster/formats/text_number.h"

#include <gtest/gtest.h>

namespace muster::formats {
namespace {

TEST(TextNumberTest, NumbersWithCommas) {
  for (const char* const text : {"1,5", "-2,25", "1.234,50", "1,234", "1,234,567.50"}) {
    EXPECT_TRUE(IsCommaNumber(text)) << text;
  }
  for (const char* const text : {"1,2,3", "1,", ",5", "1,5 kg", "a,b", "1.5", ""}) {
    EXPECT_FALSE(IsCommaNumber(text)) << text;
  }
}

TEST(TextNumberTest, NumbersWithUnits) {
  for (const char* const text :
       {"12%", "12.5 %", "$12.50", "-$5", "€3", "3 €", "£1,234.50", "1.234,50 €"}) {
    EXPECT_TRUE(IsNumberWithUnit(text)) << text;
  }
  for (const char* const text : {"%", "$", "12", "$a", "5 kg", "1%2", ""}) {
    EXPECT_FALSE(IsNumberWithUnit(text)) << text;
  }
}

TEST(TextNumberTest, AnErrorSaysWhatToWrite) {
  Field field;
  field.type = ValueType::kFloat;
  const auto describe = [&field](std::string_view text) {
    return DescribeNotRead(field, text, ParsedNumber::kWrongType);
  };
  EXPECT_EQ(describe("3,5"), "is not a float (write it with a point and no comma, as 1234.5)");
  EXPECT_EQ(describe("12%"), "is not a float (write the number without its sign)");
  EXPECT_EQ(describe("a"), "is not a float");
  field.type = ValueType::kInt;
  const std::string words =
      "is not an int (an input of words is a string; a label lists its two words)";
  EXPECT_EQ(describe("yes"), words);
  EXPECT_EQ(describe("False"), words);
  EXPECT_EQ(describe("2026-11-24 13:05"),
            "is not an int (an int input with date: true reads it as seconds)");
}

}  // namespace
}  // namespace muster::formats
