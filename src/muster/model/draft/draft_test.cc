#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/model/draft/draft_test_support.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Use = DraftColumn::Use;

TEST_F(DraftTest, NumbersThatAreNearlyTheSameAreLeftOut) {
  for (const std::vector<std::string>& values :
       {std::vector<std::string>{"0.1", "0.10000000000000002"},
        {"1e-30", "3e-30"},
        {"1000000", "1000000.01"},
        {"0", "1e31"}}) {
    const DraftColumn column = Column(values);
    EXPECT_EQ(column.use, Use::kLeftOut) << values[1];
    EXPECT_NE(column.why, "");
  }
  EXPECT_EQ(Column({"2013", "2014"}).use, Use::kNumber);
  EXPECT_EQ(Column({"0", "1e-20"}).use, Use::kNumber);
}

TEST_F(DraftTest, NumbersAreScaled) {
  EXPECT_EQ(Column({"1", "NA", "2.5", "4"}).use, Use::kNumber);
  const formats::Field& input = spec_.features.schema.fields[1];
  EXPECT_EQ(input.type, formats::ValueType::kFloat);
  EXPECT_EQ(std::get<float>(input.default_value), 2.5f);
  EXPECT_THAT(input.missing, ElementsAre("NA"));
  const ColumnSpec* column = spec_.features.Find("x");
  ASSERT_NE(column, nullptr);
  EXPECT_EQ(column->kind, ColumnKind::kNumeric);
  EXPECT_TRUE(input.mark_missing) << "an exported model takes NaN for a missing value";
  EXPECT_FLOAT_EQ(static_cast<float>(column->mean), 2.5f);
  EXPECT_NEAR(column->stddev, 1.224745, 1e-5);
}

TEST_F(DraftTest, ColumnsThatMostRowsHaveNoValueOf) {
  std::vector<std::string> values(600);
  for (size_t i = 0; i < 6; ++i) values[i * 100] = StrCat(i, ".5");
  EXPECT_EQ(Column(values, false).use, Use::kNumber);
  EXPECT_TRUE(spec_.features.Find("x")->missing_flag);
  for (size_t i = 0; i < 6; ++i) values[i * 100] = StrCat("2026-11-2", i);
  EXPECT_EQ(Column(values, false).use, Use::kDate);
  EXPECT_TRUE(spec_.features.Find("x")->missing_flag);
  values[0] = values[100] = "";
  const DraftColumn column = Column(values, false);
  EXPECT_EQ(column.use, Use::kLeftOut);
  EXPECT_EQ(column.why, "only 4 of 600 rows have a value");
  EXPECT_EQ(Column({"1", "2", ""}).use, Use::kNumber);
  EXPECT_FALSE(spec_.features.Find("x")->missing_flag);
}

TEST_F(DraftTest, ALongTailAlsoHasItsLogarithm) {
  std::vector<std::string> values(300, "0");
  for (size_t i = 0; i < 30; ++i) values[i] = StrCat(i % 3);
  values[100] = "90000";
  EXPECT_TRUE(Column(values, false).log1p);
  const ColumnSpec* column = spec_.features.Find("x_log");
  ASSERT_NE(column, nullptr);
  EXPECT_TRUE(column->log1p);
  EXPECT_FALSE(Column({"1", "2", "3"}).log1p);
}

TEST_F(DraftTest, DatesAreNumbers) {
  EXPECT_EQ(Column({"1970-01-02", "1970-01-04", "?"}).use, Use::kDate);
  const formats::Field& input = spec_.features.schema.fields[1];
  EXPECT_TRUE(input.date);
  EXPECT_EQ(std::get<int64_t>(input.default_value), 2 * 86400);
  EXPECT_THAT(input.missing, ElementsAre("?"));
  const ColumnSpec* column = spec_.features.Find("x");
  ASSERT_NE(column, nullptr);
  EXPECT_EQ(column->mean, 2 * 86400);
  EXPECT_EQ(column->stddev, 86400);
}

TEST_F(DraftTest, TimesAreNumbers) {
  EXPECT_EQ(Column({"0:00", "00:01", "?", "0:00:30"}).use, Use::kDate);
  EXPECT_TRUE(spec_.features.schema.fields[1].date);
  EXPECT_EQ(spec_.features.Find("x")->mean, 30);
  EXPECT_EQ(Column({"1:05 PM", "2:05 AM"}).use, Use::kDate);
  EXPECT_EQ(Column({"25:05", "26:05"}).use, Use::kVocabulary);
}

TEST_F(DraftTest, WordsAreAVocabularyOrHashed) {
  EXPECT_THAT(Column({"b", "a", "?", "b"}).words, ElementsAre("b", "a"));
  EXPECT_THAT(spec_.features.Find("x")->words, ElementsAre("b", "a"));
  std::vector<std::string> values = Numbered("w", 250, 1);
  for (size_t i = 0; i < 250; ++i) values.push_back(values[i]);
  const DraftColumn column = Column(values, false);
  EXPECT_EQ(column.use, Use::kHash);
  EXPECT_EQ(column.buckets, 500);
  ASSERT_NE(spec_.features.Find("x"), nullptr);
  EXPECT_EQ(spec_.features.Find("x")->kind, ColumnKind::kHash);
}

TEST_F(DraftTest, CellsOfSeveralWordsAreListsOfAVocabulary) {
  EXPECT_THAT(Column({"b;a", "a;c", "?", "a", "c;a;b", "b;c"}).words, ElementsAre("a", "b", "c"));
  const formats::Field& input = spec_.features.schema.fields[1];
  EXPECT_TRUE(input.list);
  EXPECT_EQ(input.separator, ';');
  EXPECT_THAT(input.missing, ElementsAre("?"));
  EXPECT_THAT(spec_.features.Find("x")->words, ElementsAre("a", "b", "c"));
}

TEST_F(DraftTest, IdsThatComeAgainAreWords) {
  EXPECT_EQ(Column({"1000000000000000007", "1000000000000000014"}).use, Use::kVocabulary);
  EXPECT_THAT(spec_.features.Find("x")->words,
              ElementsAre("1000000000000000007", "1000000000000000014"));
  EXPECT_EQ(Column({"4", "7", "9"}, true, "user_id").use, Use::kVocabulary);
  EXPECT_EQ(Column({"4", "7", "9"}, true, "amount").use, Use::kNumber);
  std::string text;
  for (int i = 0; i < 900; ++i) {
    text += StrCat("{\"user\": ", 1000000000000000000 + i % 300, ", \"y\": ", i % 2, "}\n");
  }
  EXPECT_EQ(Make(text, "y", "data.jsonl").columns[0].use, Use::kHash);
  const formats::Field& user = spec_.features.schema.fields[0];
  EXPECT_EQ(user.type, formats::ValueType::kInt) << "JSON lines have ints that are not text";
  EXPECT_EQ(std::get<int64_t>(user.default_value), -1);
}

TEST_F(DraftTest, IdsAreLeftOut) {
  EXPECT_EQ(Column(Numbered("w", 60, 7), false).use, Use::kLeftOut);
  EXPECT_EQ(Column(Numbered("", 60, 1), false).use, Use::kLeftOut)
      << "numbers that count the rows are an ID";
  EXPECT_EQ(Column(Numbered("", 60, 7), false).use, Use::kLeftOut)
      << "numbers that always ascend are an ID";
  EXPECT_EQ(Column(Numbered("", 60, 401), false, "UserId").use, Use::kLeftOut)
      << "a column named as an ID is one";
  EXPECT_EQ(Column(Numbered("", 60, 401), false, "pay").use, Use::kNumber)
      << "amounts may all be different";
  const DraftColumn column = Column({"7"});
  EXPECT_EQ(column.use, Use::kLeftOut);
  EXPECT_THAT(column.why, HasSubstr("are the same"));
  const Draft draft = Make("x,id,y\n1,,0\n2,,1\n", "y");
  EXPECT_THAT(draft.yaml, HasSubstr("  # id is left out: no row has a value."));
}

TEST_F(DraftTest, AnIdIsOfferedAsTheKeyOfPredictions) {
  std::string text = "user id,x,y\n";
  for (int row = 0; row < 40; ++row) text += StrCat("u", row, ",", row % 7, ",", row % 2, "\n");
  const Draft draft = Make(text, "y");
  EXPECT_THAT(draft.yaml, HasSubstr("  # To have it beside each prediction, write it here as "
                                    "\"user id\": string, and key: \"user id\" below.\n"));
}

TEST_F(DraftTest, DataWithoutAHeader) {
  Make("39, Private, <=50K\n50, ?, >50K\n38, Private, <=50K\n", "c3");
  EXPECT_THAT(spec_.format.columns, ElementsAre("c1", "c2", "c3"));
  EXPECT_EQ(spec_.format.trim, true);
  EXPECT_EQ(spec_.features.label.input, "c3");
}

TEST_F(DraftTest, ListsOfNumbersHaveAShape) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += StrCat("{\"p\": [", i, ", 0, 2.5], \"y\": ", i % 2, "}\n");
  const Draft draft = Make(text, "y", "data.jsonl");
  ASSERT_EQ(draft.columns.size(), 1u);
  EXPECT_EQ(draft.columns[0].shape, 3);
  EXPECT_EQ(spec_.features.Find("p")->shape, 3);
}

TEST_F(DraftTest, ManyRowsGetANetwork) {
  std::string text = "n,word,y\n";
  for (int i = 0; i < 1200; ++i) text += StrCat(i % 17, ",w", i % 300, ",", i % 2, "\n");
  EXPECT_EQ(Make(text, "y").type->name, "wide_deep");
  EXPECT_EQ(spec_.features.Find("word_embedding")->kind, ColumnKind::kEmbedding);
  EXPECT_EQ(spec_.train.epochs, 30) << "more are for linear models";
  EXPECT_EQ(spec_.dnn->dropout, 0.2);
  request_.model = "linear";
  EXPECT_EQ(Make(text, "y").epochs, 53);
}

// Rows of numbers and words with a label of two values.
std::string ClickRows() {
  std::string text = "age,site,user,item,price,y\n";
  for (int i = 0; i < 300; ++i) {
    text += StrCat(i % 17, ",s", i % 3, ",u", i % 70, ",i", i % 60, ",", i % 11, ",", i % 2, "\n");
  }
  return text;
}

TEST_F(DraftTest, EveryModelHasItsParts) {
  for (const DraftType& type : DraftTypes()) {
    request_.model = type.name;
    request_.item =
        type.towers ? std::vector<std::string>{"item", "price"} : std::vector<std::string>{};
    EXPECT_EQ(Make(ClickRows(), "y").type->name, type.name);
    EXPECT_EQ(spec_.type(), type.name);
    if (spec_.dnn) {
      const bool vectors = type.fm;
      EXPECT_THAT(spec_.dnn->columns,
                  ElementsAre("age", vectors ? "site_embedding" : "site_indicator",
                              "user_embedding", "item_embedding", "price"));
    }
    if (spec_.fm) {
      EXPECT_THAT(spec_.fm->columns, ElementsAre("age", "site_embedding", "user_embedding",
                                                 "item_embedding", "price"));
    }
    if (spec_.linear) {
      EXPECT_THAT(spec_.linear->columns, ElementsAre("age", "site", "user", "item", "price"));
    }
  }
  EXPECT_THAT(spec_.towers->query.columns, ElementsAre("age", "site_indicator", "user_embedding"));
  EXPECT_THAT(spec_.towers->item.columns, ElementsAre("item_embedding", "price"));
  EXPECT_EQ(spec_.head.kind, "in_batch_softmax");
}

TEST_F(DraftTest, AModelThatDoesNotFitTheDataIsRefused) {
  const auto refused = [this](const std::string& model, const std::string& text,
                              const std::vector<std::string>& item = {}) {
    request_.model = model;
    request_.item = item;
    const absl::Status status = Try(text, "y").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused("deepfn", ClickRows()), HasSubstr("did you mean 'deepfm'?"));
  EXPECT_THAT(refused("fm", "a,b,y\n1,2,0\n2,1,1\n"), HasSubstr("needs a column of words"));
  EXPECT_THAT(refused("fm", "a,y\nred,0\nblue,1\n"), HasSubstr("and another one"));
  EXPECT_THAT(refused("deepfm", "a,b,y\nq,2,no\nr,1,yes\nq,1,maybe\n"),
              HasSubstr("has 3 classes; take --model dcn"));
  EXPECT_THAT(refused("two_tower", ClickRows()), HasSubstr("by --item A,B,..."));
  EXPECT_THAT(refused("two_tower", ClickRows(), {"itemm"}), HasSubstr("did you mean 'item'?"));
  EXPECT_THAT(refused("two_tower", ClickRows(), {"age", "site", "user", "item", "price"}),
              HasSubstr("no column is left to describe the query"));
  EXPECT_THAT(refused("two_tower", "a,b,y\nq,2,no\nr,1,yes\n", {"a"}),
              HasSubstr("a number of 0 or more"));
  EXPECT_THAT(refused("dnn", ClickRows(), {"item"}), HasSubstr("--item is for --model two_tower"));
}

TEST_F(DraftTest, NamesAndWordsThatYamlWouldMisreadAreQuoted) {
  Make("\"a: b\",\"no\",\"x \"\"q\"\" #\",y\n1,yes,null,1\n2,no,\"a, b\",0\n1,no,~,1\n", "y");
  EXPECT_NE(spec_.features.schema.Find("a: b"), -1);
  EXPECT_NE(spec_.features.schema.Find("no"), -1);
  EXPECT_NE(spec_.features.schema.Find("x \"q\" #"), -1);
  EXPECT_THAT(spec_.features.Find("no")->words, ElementsAre("no", "yes"));
}

TEST_F(DraftTest, AFeatureColumnGetsAUniqueName) {
  std::string text = "word,word_indicator,y\n";
  for (int i = 0; i < 1200; ++i) text += StrCat("w", i % 3, ",", i % 5, ",", i % 2, "\n");
  Make(text, "y");
  EXPECT_NE(spec_.features.Find("word_indicator_"), nullptr);
}

}  // namespace
}  // namespace muster::model
