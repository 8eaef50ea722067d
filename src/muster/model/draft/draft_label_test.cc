#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/model/draft/draft_test_support.h"

namespace muster::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Task = DraftLabel::Task;

TEST_F(DraftTest, TaskOfTheLabel) {
  EXPECT_EQ(WithLabels({"0", "1"}).label.task, Task::kBinary);
  EXPECT_TRUE(spec_.features.label.words.empty());
  EXPECT_EQ(WithLabels({"0.0", "1.0"}).label.task, Task::kBinary);
  EXPECT_TRUE(spec_.features.label.words.empty());
  EXPECT_EQ(WithLabels({"-1", "1"}).label.task, Task::kBinary);
  EXPECT_THAT(spec_.features.label.words, ElementsAre("-1", "1"));
  EXPECT_EQ(WithLabels({">50K", "<=50K"}).label.task, Task::kBinary);
  EXPECT_THAT(spec_.features.label.words, ElementsAre("<=50K", ">50K"));
  EXPECT_EQ(WithLabels({"b", "c", "a"}).label.task, Task::kMultiClass);
  EXPECT_THAT(spec_.features.label.words, ElementsAre("a", "b", "c"));
  EXPECT_EQ(spec_.head.kind, "multi_class");
  EXPECT_EQ(WithLabels({"0", "1", "2"}).label.classes, 3u);
  EXPECT_TRUE(spec_.features.label.words.empty());
  EXPECT_EQ(WithLabels({"1", "2", "10"}).label.task, Task::kMultiClass);
  EXPECT_THAT(spec_.features.label.words, ElementsAre("1", "2", "10"));
  EXPECT_EQ(WithLabels({"1.5", "2.5"}).label.task, Task::kRegression);
  EXPECT_EQ(WithLabels(Numbered("", 25, 1)).label.task, Task::kRegression);
  EXPECT_EQ(spec_.head.kind, "regression");
}

TEST_F(DraftTest, WhatIsDecidedAboutNumbersOfALabelIsTold) {
  EXPECT_EQ(WithLabels({"0", "1"}).label.note, "");
  EXPECT_EQ(WithLabels(Numbered("", 25, 1)).label.note, "");
  const Draft draft = WithLabels({"0.5", "1.5"});
  EXPECT_EQ(draft.label.task, Task::kRegression);
  EXPECT_EQ(draft.label.note,
            "its 2 different numbers are learned as amounts; to learn them as classes, make the "
            "input a string (\"y\": string), and write label: {input: \"y\", words: [\"0.5\", "
            "\"1.5\"]} and head: binary");
  EXPECT_THAT(draft.yaml, HasSubstr(StrCat("# ", draft.label.note)));
  EXPECT_EQ(WithLabels({"1", "2"}).label.note,
            "its 2 different numbers are learned as classes; to learn them as amounts, make the "
            "input a float (\"y\": float), and write label: \"y\" and head: regression");
  std::string text;
  for (int i = 0; i < 30; ++i) text += StrCat("{\"x\": ", i % 7, ", \"y\": ", 1 + i % 2, ".0}\n");
  EXPECT_EQ(Make(text, "y", "data.jsonl").label.task, Task::kBinary);
  EXPECT_THAT(spec_.features.label.words, ElementsAre("1", "2"));
  EXPECT_TRUE(spec_.features.schema.fields[1].truncate) << "floats are stored";
}

TEST_F(DraftTest, LabelsThatCannotBeLearnedAreRefused) {
  const absl::Status misspelt = Try("id,Survived\n1,0\n2,1\n", "Survivd").status();
  EXPECT_EQ(misspelt.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(misspelt.message(),
            "label 'Survivd' is no column of the data (did you mean 'Survived'?)");
  EXPECT_EQ(Try("1,2\n3,4\n", "y").status().message(),
            "label 'y' is no column of the data, which has no header: its columns are named c1 to "
            "c2; give the label as one of these, such as --label c2, or name all columns with "
            "--columns A,B,...");
  EXPECT_THAT(std::string(Try("x,y\n1,a\n2,a\n", "y").status().message()),
              HasSubstr("'a' in all rows"));
  EXPECT_THAT(std::string(Try("x,y\n1,\n2,\n", "y").status().message()),
              HasSubstr("no value in any row"));
  std::string many = "x,y\n";
  for (int i = 0; i < 1001; ++i) many += StrCat(i % 3, ",w", i, "\n");
  EXPECT_THAT(std::string(Try(many, "y").status().message()), HasSubstr("too many classes"));
  EXPECT_THAT(std::string(Try("x,y\n1,0\n1,1\n", "y").status().message()),
              HasSubstr("no column besides the label"));
}

TEST_F(DraftTest, WhyALabelIsNoNumberIsTold) {
  std::string commas = "x;y\n", missing = "x,y\n";
  for (int i = 0; i < 200; ++i) {
    commas += StrCat(i % 7, ";", i, ",5\n");
    missing += StrCat(i % 7, ",", i % 2 == 0 ? "None" : "Some", "\n");
  }
  EXPECT_THAT(Try(commas, "y").status().message(), HasSubstr("numbers with a comma, such as 0,5"));
  EXPECT_THAT(Try(missing, "y").status().message(),
              HasSubstr("is 'Some' in all rows but those with 'None', which counts as missing"));
}

TEST_F(DraftTest, YesIsTheSecondClass) {
  const auto second = [this](const std::string& yes, const std::string& no) {
    std::string text = "x,y\n";
    for (int i = 0; i < 30; ++i) text += StrCat(i % 7, ",", i % 3 == 0 ? yes : no, "\n");
    return Make(text, "y").label.words.at(1);
  };
  EXPECT_EQ(second("ja", "nein"), "ja");
  EXPECT_EQ(second("Ja", "Nee"), "Ja");
  EXPECT_EQ(second("yes", "no"), "yes");
}

TEST_F(DraftTest, ATextThatOnlyNamesTheRowsIsNoLabel) {
  std::string text = "x,y\n";
  for (int i = 0; i < 30; ++i) text += StrCat(i % 7, ",name", i, "\n");
  EXPECT_THAT(std::string(Try(text, "y").status().message()),
              HasSubstr("label 'y' is text, and all its 30 values are different"));
}

}  // namespace
}  // namespace muster::model
