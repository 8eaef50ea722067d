#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/model/draft/draft_test_support.h"

namespace muster::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Use = DraftColumn::Use;

TEST_F(DraftTest, TextThatIsNotUtf8IsTold) {
  EXPECT_THAT(std::string(Try("caf\xe9,y\n1,0\n2,1\n", "y").status().message()),
              HasSubstr("give --encoding-errors latin1"));
  const Draft draft = Make("x,y\na,0\n\xe9,1\na,1\n\xe9,1\n", "y");
  EXPECT_THAT(draft.warnings, ElementsAre(HasSubstr("text that is not UTF-8, such as \\xe9, ")));
}

TEST_F(DraftTest, AColumnThatIsThereTwiceIsTold) {
  const std::string rows = "1,2,3,0\n2,2,4,1\n";
  EXPECT_THAT(Make("x,x,z,y\n" + rows, "y").warnings,
              ElementsAre(HasSubstr("column 'x' is left out: it occurs twice in the header")));
  EXPECT_THAT(std::string(Try("x,y,z,y\n" + rows, "y").status().message()),
              HasSubstr("label 'y' occurs twice in the header"));
  EXPECT_THAT(std::string(Try("x,x,x,y\n" + rows, "y").status().message()),
              testing::AllOf(testing::StartsWith("no column besides the label 'y'"),
                             HasSubstr("column 'x' is left out")));
}

TEST_F(DraftTest, WhyNoColumnCanBeLearnedFromIsTold) {
  EXPECT_EQ(Try("x,z,y\n1,a,0\n1,a,1\n", "y").status().message(),
            "no column besides the label 'y' can be learned from; column 'x' is left out: all "
            "values are the same; column 'z' is left out: all values are the same");
  EXPECT_THAT(
      std::string(
          Try("a,b,c,d,e,f,g,y\n1,1,1,1,1,1,1,0\n1,1,1,1,1,1,1,1\n", "y").status().message()),
      testing::AllOf(HasSubstr("column 'e'"), Not(HasSubstr("column 'f'")),
                     testing::EndsWith("; and 2 more columns")));
}

TEST_F(DraftTest, ANameThatNeedsAFlagIsTold) {
  EXPECT_THAT(
      std::string(Try("Alter,Gek\xfcndigt\n1,0\n2,1\n", "Gek\xc3\xbcndigt").status().message()),
      testing::AllOf(HasSubstr("give --encoding-errors latin1"), Not(HasSubstr("\xfc"))));
}

TEST_F(DraftTest, CellsBetweenSpacesAreSuspected) {
  EXPECT_THAT(std::string(Try("age pay y\n1 2 0\n2 3 1\n", "y").status().message()),
              HasSubstr("whose only column is 'age pay y'; if single spaces are between the cells, "
                        "give --delimiter ' '"));
}

TEST_F(DraftTest, PointsThatMaySeparateThousandsAreTold) {
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += StrCat("2.", 100 + i, ";", i, ",5;", i % 2, "\n");
  const std::vector<std::string> warnings = Make("x;z;y\n" + rows, "y").warnings;
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("column 'x': if the point in 2.100 stands between thousands"));
  EXPECT_THAT(warnings[1], HasSubstr("column 'z': numbers with a comma"));
}

TEST_F(DraftTest, WordsAmongNumbersAreTold) {
  std::string text = "age,x,y\n";
  for (int i = 0; i < 60; ++i) {
    const std::string age = i % 6 == 0    ? "k.A."
                            : i % 20 == 1 ? "-"
                            : i == 2      ? "alt"
                                          : StrCat(20 + i);
    text += StrCat(age, ",", i % 7, ",", i % 2, "\n");
  }
  const Draft draft = Make(text, "y");
  EXPECT_THAT(draft.warnings,
              ElementsAre("column 'age': 46 of 60 values are numbers, but all are read as words "
                          "because of 'k.A.' (10), '-' (3), 'alt' (1); if these stand for missing "
                          "values, give --missing k.A.,-,alt (docs/init.md)"));
}

TEST_F(DraftTest, DatesWithAYearOfTwoDigitsAreTold) {
  std::string text = "day,x,y\n";
  for (int i = 0; i < 60; ++i) text += StrCat(1 + i % 9, ".3.26,", i % 7, ",", i % 2, "\n");
  EXPECT_THAT(Make(text, "y").warnings,
              ElementsAre(HasSubstr("dates such as 1.3.26, with a year of two digits, are read as "
                                    "words; give --dates month_first or --dates day_first")));
}

TEST_F(DraftTest, NumbersThatMayStandForMissingValuesAreTold) {
  std::string text = "co,temp,score,code,y\n";
  for (int i = 0; i < 60; ++i) {
    const std::string co = i % 9 == 0 ? "-200" : StrCat(i % 5 + 1, ".5");
    const std::string temp = i % 7 == 0 ? "-999" : StrCat(i % 8 - 20);
    const std::string score = i % 6 == 0 ? "9999" : StrCat(i % 90);
    text += StrCat(co, ",", temp, ",", score, ",", i % 3 - 1, ",", i % 2, "\n");
  }
  EXPECT_THAT(
      Make(text, "y").warnings,
      ElementsAre("column 'co': 7 values are -200, and the others are 1.5 to 5.5: if -200 stands "
                  "for a missing value, give --missing -200",
                  HasSubstr("column 'temp': 9 values are -999, and the others are -20 to -13"),
                  HasSubstr("column 'score': 10 values are 9999, and the others are 1 to 59")));
}

TEST_F(DraftTest, ClassesThatDifferInCapitalsOnlyAreTold) {
  std::string text = "x,y\n";
  for (int i = 0; i < 60; ++i)
    text += StrCat(i % 7, ",", i % 5 == 0 ? "Yes" : i % 2 ? "yes" : "no", "\n");
  EXPECT_THAT(Make(text, "y").warnings,
              ElementsAre("label 'y': 'yes' (24) and 'Yes' (12) are classes of their own; if they "
                          "mean the same, write them alike in the data"));
}

TEST_F(DraftTest, ADateKeepsTheOrderThatWasFound) {
  std::string text = "day,x,y\n";
  for (int i = 0; i < 60; ++i) text += StrCat("3/", 1 + i % 28, "/2026,", i % 7, ",", i % 2, "\n");
  const Draft draft = Make(text, "y");
  EXPECT_TRUE(draft.warnings.empty());
  EXPECT_THAT(draft.yaml, HasSubstr("  day: {type: int, date: month_first, default: 177"));
}

TEST_F(DraftTest, NumbersAndDatesInUnreadFormsAreTold) {
  std::string text = "price;day;x;y\n";
  for (int i = 0; i < 60; ++i) {
    text += StrCat(i % 9, ",", i % 5, ";", 1 + i % 12, "/2/2026;", i % 7, ";", i % 2, "\n");
  }
  const Draft draft = Make(text, "y");
  ASSERT_EQ(draft.warnings.size(), 2u);
  EXPECT_EQ(draft.warnings[0],
            "column 'price': numbers with a comma, such as 0,0, are read as words; write them with "
            "a point and no other sign, as 1234.5 (docs/init.md)");
  EXPECT_THAT(draft.warnings[1], HasSubstr("column 'day': dates such as 1/2/2026, of which month"));
  EXPECT_THAT(draft.yaml, HasSubstr("  # price: numbers with a comma, such as 0,0, are read"));
  EXPECT_EQ(draft.columns[0].use, Use::kVocabulary);
  text = "price;x;y\n";
  for (int i = 0; i < 60; ++i) text += StrCat(i, ",", i % 5, ";", i % 7, ";", i % 2, "\n");
  EXPECT_THAT(Make(text, "y").yaml, HasSubstr("# price is left out: all its values are different, "
                                              "and numbers with a comma, such as 0,0"));
}

}  // namespace
}  // namespace muster::model
