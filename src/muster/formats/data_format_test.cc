#include "muster/formats/data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DataFormatTest, NamedColumnsMeanThatThereIsNoHeader) {
  EXPECT_TRUE(DataFormat().has_header());
  EXPECT_FALSE(DataFormat{.columns = {"a"}}.has_header());
  EXPECT_TRUE((DataFormat{.header = true, .columns = {"a"}}).has_header());
  EXPECT_FALSE(DataFormat{.header = false}.has_header());
}

TEST(DataFormatTest, OverridesReplaceTheSettingsOfTheBase) {
  const DataFormat base = {.delimiter = ';', .columns = {"a", "b"}, .trim = true};
  const DataFormat over = Override(base, {.delimiter = '\t', .quote = '\0'});
  EXPECT_EQ(over.delimiter, '\t');
  EXPECT_EQ(over.quote, '\0');
  EXPECT_EQ(over.trim, true);
  EXPECT_THAT(over.columns, ElementsAre("a", "b"));
  EXPECT_TRUE(Override(base, {.header = true}).has_header());
  EXPECT_THAT(Override(base, {.header = true}).columns, ElementsAre())
      << "the header names the columns";
  EXPECT_FALSE(Override({.header = true}, {.columns = {"x"}}).has_header());
  EXPECT_EQ(Describe(over), "delimiter tab, columns a b, trimmed, quote none");
  EXPECT_EQ(Describe({}), "");
}

TEST(DataFormatTest, InputsNameTheCellsOfDataWithoutNames) {
  Schema inputs;
  for (const char* name : {"y", "x"}) inputs.fields.emplace_back().name = name;
  EXPECT_THAT(NameColumns({.header = false}, inputs).columns, ElementsAre("y", "x"));
  EXPECT_THAT(NameColumns({}, inputs).columns, ElementsAre());
  EXPECT_THAT(NameColumns({.columns = {"a"}}, inputs).columns, ElementsAre("a"));
}

TEST(DataFormatTest, MissingMarksApplyToEveryField) {
  Schema inputs;
  inputs.fields.emplace_back().missing = {"NA", "-"};
  inputs.fields.emplace_back();
  const Schema schema = WithMissing(inputs, {.missing = {{"?", "NA"}}});
  EXPECT_THAT(schema.fields[0].missing, ElementsAre("NA", "-", "?"));
  EXPECT_THAT(schema.fields[1].missing, ElementsAre("?", "NA"));
}

TEST(DataFormatTest, ValuesAreParsedAndPrinted) {
  EXPECT_EQ(*ParseDelimiter("tab"), '\t');
  EXPECT_EQ(*ParseDelimiter("\\t"), '\t');
  EXPECT_EQ(*ParseDelimiter("^A"), '\x01');
  EXPECT_EQ(*ParseDelimiter(";"), ';');
  EXPECT_FALSE(ParseDelimiter(";;").ok());
  EXPECT_EQ(*ParseQuote("none"), '\0');
  EXPECT_FALSE(ParseQuote("x").ok());
  EXPECT_THAT(ParseFileFormat("cvs").status().message(), HasSubstr("did you mean 'csv'?"));
  EXPECT_EQ(*ParseEncodingErrors("latin1"), EncodingErrors::kLatin1);
  EXPECT_THAT(CheckDataFormat({.columns = {"a", "b", "a"}}).message(), HasSubstr("'a' is named"));
  EXPECT_FALSE(CheckDataFormat({.delimiter = '\'', .quote = '\''}).ok());
}

}  // namespace
}  // namespace muster::formats
