#include "muster/data/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/number_sums.h"
#include "muster/data/profile/find_columns.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using Kind = ColumnProfile::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ProfileTest : public ::testing::Test {
 protected:
  absl::StatusOr<Profile> Try(const std::string& text, const std::string& wanted = "",
                              const std::string& path = "data.csv") {
    EXPECT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
    return ProfileData(*files_, {.patterns = {path}, .wanted = wanted});
  }
  Profile Read(const std::string& text, const std::string& wanted = "",
               const std::string& path = "data.csv") {
    auto profile = Try(text, wanted, path);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return profile.ok() ? *std::move(profile) : Profile();
  }
  // Returns the profile of a column with these values.
  ColumnProfile Column(const std::vector<std::string>& values) {
    std::string text = "other,x\n";
    for (const std::string& value : values) text += StrCat("1,", value, "\n");
    Profile profile = Read(text);
    return profile.columns.size() == 2 ? profile.columns[1] : ColumnProfile();
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(ProfileTest, KindsAreFound) {
  EXPECT_EQ(Column({"1", "-2", "+3"}).kind, Kind::kInt);
  EXPECT_EQ(Column({"1", "2.5", "1e-3"}).kind, Kind::kFloat);
  EXPECT_EQ(Column({"2026-11-24", "2026-11-25 13:05"}).kind, Kind::kDate);
  EXPECT_EQ(Column({"13:05", "9:05", "23:59:59"}).kind, Kind::kTime);
  EXPECT_EQ(Column({"13:05", "2026-11-24"}).kind, Kind::kText);
  EXPECT_EQ(Column({"a", "1"}).kind, Kind::kText);
  EXPECT_EQ(Column({"2026-11-24", "7"}).kind, Kind::kText);
  EXPECT_EQ(Column({"", "?"}).kind, Kind::kNothing);
}

TEST_F(ProfileTest, NumbersWithLeadingZerosAreText) {
  EXPECT_EQ(Column({"01234", "98765"}).kind, Kind::kText);
  EXPECT_EQ(Column({"0", "0.5"}).kind, Kind::kFloat);
}

TEST_F(ProfileTest, WholeNumbersThatADoubleDoesNotKeepAreText) {
  EXPECT_EQ(Column({"9007199254740991", "1"}).kind, Kind::kInt);
  EXPECT_EQ(Column({"9007199254740993", "1"}).kind, Kind::kText);
  EXPECT_EQ(Column({"-1000000000000000007", "1"}).kind, Kind::kText);
  EXPECT_EQ(Column({"18446744073709551615", "1"}).kind, Kind::kText) << "64 bits without a sign";
  EXPECT_EQ(Column({"1e20", "1.5"}).kind, Kind::kFloat);
}

TEST_F(ProfileTest, NumbersWhosePointMaySeparateThousandsAreMarked) {
  EXPECT_EQ(Column({"2.030", "17", "-117.500", "1.000"}).grouped_number, "2.030");
  for (const std::string value : {"2.03", "0.250", "1234.567", "2.0305", "2.030e3", ".250"}) {
    EXPECT_EQ(Column({"2.030", value}).grouped_number, "") << value;
  }
  EXPECT_EQ(Column({"2", "17"}).grouped_number, "");
}

TEST_F(ProfileTest, NumbersAndDatesInUnreadFormsAreText) {
  using Unread = ColumnProfile::Unread;
  const auto find = [this](std::vector<std::string> values) {
    for (std::string& value : values) value = StrCat("\"", value, "\"");
    const ColumnProfile column = Column(values);
    EXPECT_EQ(column.kind, Kind::kText);
    EXPECT_EQ(column.unread == Unread::kNothing, column.unread_value.empty());
    return std::pair(column.unread, column.unread_value);
  };
  EXPECT_THAT(find({"3", "1,5", "-2,25", "NA"}), Pair(Unread::kCommaNumbers, "1,5"));
  EXPECT_THAT(find({"1.234,5", "17,0"}), Pair(Unread::kCommaNumbers, "1.234,5"));
  EXPECT_THAT(find({"1,234", "1,234,567.50", "12.5"}), Pair(Unread::kCommaNumbers, "1,234"));
  EXPECT_THAT(find({"11/12/2026", "?"}), Pair(Unread::kMonthOrDay, "11/12/2026"));
  EXPECT_THAT(find({"11/24/2026", "24/11/2026"}), Pair(Unread::kMonthOrDay, "11/24/2026"));
  EXPECT_THAT(find({"1/2/26 10:30", "2026-11-24"}), Pair(Unread::kShortDates, "1/2/26 10:30"));
  EXPECT_THAT(find({"24/11/26"}), Pair(Unread::kShortDates, "24/11/26"));
  EXPECT_THAT(find({"24.11.26", "1.2.26"}), Pair(Unread::kShortDates, "24.11.26"));
  EXPECT_THAT(find({"13:05 PM", "11:05 AM"}), Pair(Unread::kTimes, "13:05 PM"));
  EXPECT_THAT(find({"13:05", "125:30.5", "1:02:03"}), Pair(Unread::kTimes, "125:30.5"));
  EXPECT_THAT(find({"12%", "3", "1,5%"}), Pair(Unread::kNumbersWithUnit, "12%"));
  EXPECT_THAT(find({"$12.50", "?"}), Pair(Unread::kNumbersWithUnit, "$12.50"));
  for (const char* const value :
       {"1,2,3", "1,", ",5", "1,5 kg", "1,a", "1/2", "1/2/3/2026", "11/24/026", "1-2/2026",
        "123/4/2026", "a,b", "16:9", "a:05", ":05", "1:05 XM", "1:02:03:04", "00:1b:63"}) {
    EXPECT_THAT(find({value, value}), Pair(Unread::kNothing, "")) << value;
  }
  EXPECT_THAT(find({"1,5", "red", "blue"}), Pair(Unread::kNothing, "")) << "half of them";
}

TEST_F(ProfileTest, ADayOverTwelveTellsTheOrderOfAllDates) {
  const ColumnProfile american = Column({"11/24/2026", "1/2/2026", "", "2026-11-25"});
  EXPECT_EQ(american.kind, Kind::kDate);
  EXPECT_EQ(american.date_order, formats::DateOrder::kMonthFirst);
  EXPECT_EQ(american.missing, 1u);
  EXPECT_EQ(american.numbers.count, 3);
  EXPECT_EQ(american.numbers.min, 1767312000) << "2026-01-02";
  EXPECT_EQ(american.numbers.max, 1795564800) << "2026-11-25";
  const ColumnProfile british = Column({"24-11-2026", "2-1-2026", "?"});
  EXPECT_EQ(british.date_order, formats::DateOrder::kDayFirst);
  EXPECT_EQ(british.numbers.min, 1767312000);
  EXPECT_EQ(Column({"2026-11-24"}).date_order, formats::DateOrder::kUnknown);
}

TEST_F(ProfileTest, NumbersThatAreAllDatesWithoutSeparatorsAreDates) {
  const ColumnProfile column =
      Column({"20261124", "20261125", "19991231", "20260102", "", "?", "20260103"});
  EXPECT_EQ(column.kind, Kind::kDate);
  EXPECT_EQ(column.numbers.max, 1795564800) << "2026-11-25";
  EXPECT_EQ(Column({"20261124", "20261125"}).kind, Kind::kInt) << "too few to tell";
  EXPECT_EQ(Column({"20261124", "20261125", "20261332", "20260102", "20260103", "20260104"}).kind,
            Kind::kInt);
}

TEST_F(ProfileTest, AnOrderThatIsGivenReadsAllDates) {
  ColumnProfiler profiler("day", formats::ValueType::kString, formats::DateOrder::kDayFirst);
  for (const char* value : {"1/2/2026", "2.1.26", "3-4-26"}) {
    profiler.Add(value);
    profiler.EndRow(1);
  }
  EXPECT_EQ(profiler.Finish().kind, Kind::kDate);
  EXPECT_EQ(profiler.Finish().date_order, formats::DateOrder::kDayFirst);
  profiler.Add("12/24/2026");
  profiler.EndRow(1);
  EXPECT_EQ(profiler.Finish().kind, Kind::kText) << "it has the month first";
}

TEST_F(ProfileTest, MomentsOfNumbers) {
  const ColumnProfile column = Column({"1", "", "2", "6"});
  EXPECT_EQ(column.rows, 4u);
  EXPECT_EQ(column.values, 3u);
  EXPECT_EQ(column.missing, 1u);
  EXPECT_EQ(column.numbers.mean, 3);
  EXPECT_NEAR(column.numbers.stddev(), 2.1602469, 1e-6);
  EXPECT_EQ(column.numbers.min, 1);
  EXPECT_EQ(column.numbers.max, 6);
  EXPECT_NEAR(column.logarithms.mean, (std::log(2) + std::log(3) + std::log(7)) / 3, 1e-12);
  EXPECT_EQ(Column({"1", "-1"}).logarithms.count, 0);
}

TEST_F(ProfileTest, MarksOfMissingValues) {
  const ColumnProfile numbers = Column({"1", "NA", "NA", "2.5", "-"});
  EXPECT_EQ(numbers.kind, Kind::kFloat);
  EXPECT_THAT(numbers.marks, ElementsAre(Pair("-", 1), Pair("NA", 2)));
  EXPECT_EQ(numbers.missing, 3u);
  EXPECT_EQ(numbers.values, 2u);
  EXPECT_EQ(numbers.distinct, 2u);
  const ColumnProfile text = Column({"a", "?", "b", "-"});
  EXPECT_EQ(text.kind, Kind::kText);
  EXPECT_THAT(text.marks, ElementsAre(Pair("?", 1)));
  EXPECT_THAT(text.words, ElementsAre(Pair("-", 1), Pair("a", 1), Pair("b", 1)));
}

TEST_F(ProfileTest, GivenMarksAreMissingValues) {
  ASSERT_TRUE(io::WriteFileAtomically(*files_, "data.csv", "x,n\n3,-999\nk.A.,5\n4,-999\n").ok());
  const auto profile = ProfileData(
      *files_,
      {.patterns = {"data.csv"}, .format = {.missing = std::vector<std::string>{"k.A.", "-999"}}});
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->columns[0].kind, Kind::kInt);
  EXPECT_EQ(profile->columns[0].missing, 1u);
  EXPECT_EQ(profile->columns[0].numbers.mean, 3.5);
  EXPECT_EQ(profile->columns[1].missing, 2u);
  EXPECT_EQ(profile->columns[1].numbers.min, 5);
}

TEST_F(ProfileTest, NumbersAmongWhichWordsOrHugeNumbersAre) {
  using Unread = ColumnProfile::Unread;
  std::vector<std::string> values;
  for (int i = 0; i < 100; ++i) values.push_back(StrCat(i, ".5"));
  for (const char* word : {"n/v", "defekt", "n/v", "leer"}) values.emplace_back(word);
  const ColumnProfile odd = Column(values);
  EXPECT_EQ(odd.kind, Kind::kText);
  EXPECT_EQ(odd.unread, Unread::kNumbersAndWords);
  EXPECT_EQ(odd.numbers_in_text, 100u);
  EXPECT_THAT(odd.odd_words, ElementsAre(Pair("n/v", 2), Pair("defekt", 1), Pair("leer", 1)));
  values.resize(100);
  values.emplace_back("12345678901234567890");
  const ColumnProfile huge = Column(values);
  EXPECT_EQ(huge.unread, Unread::kNumbersAndWords);
  EXPECT_THAT(huge.odd_words, ElementsAre(Pair("12345678901234567890", 1)));
  values.assign({"01234", "98765", "5", "6"});
  EXPECT_EQ(Column(values).unread, Unread::kNothing) << "codes are words";
  EXPECT_EQ(Column({"1", "a", "b", "c", "d"}).unread, Unread::kNothing) << "mostly words";
}

TEST_F(ProfileTest, ARareWordAmongNumbersIsAMark) {
  std::vector<std::string> values(40, "7");
  values.push_back("not asked");
  EXPECT_THAT(Column(values).marks, ElementsAre(Pair("not asked", 1)));
  EXPECT_EQ(Column(values).kind, Kind::kInt);
  EXPECT_EQ(Column({"7", "7", "not asked"}).kind, Kind::kText);
}

TEST_F(ProfileTest, WordsByFrequency) {
  const ColumnProfile column = Column({"b", "a", "c", "b"});
  EXPECT_THAT(column.words, ElementsAre(Pair("b", 2), Pair("a", 1), Pair("c", 1)));
  EXPECT_FALSE(column.never_twice);
  EXPECT_TRUE(Column({"b", "a", "c"}).never_twice);
  EXPECT_TRUE(Column({"1", "2", "9"}).ascending);
  EXPECT_FALSE(Column({"1", "9", "2"}).ascending);
}

TEST_F(ProfileTest, ManyDistinctValuesAreNotAllKept) {
  ColumnProfiler profiler("x", formats::ValueType::kString);
  for (size_t i = 0; i < kMaxProfiledValues + 10; ++i) {
    profiler.Add(StrCat("w", i));
    profiler.EndRow(1);
  }
  const ColumnProfile column = profiler.Finish();
  EXPECT_EQ(column.distinct, kMaxProfiledValues);
  EXPECT_TRUE(column.more_distinct);
  EXPECT_TRUE(column.never_twice);
}

TEST_F(ProfileTest, LongValuesAreNotAllKept) {
  ColumnProfiler profiler("x", formats::ValueType::kString);
  for (size_t i = 0; i < 100; ++i) {
    profiler.Add(std::string(kMaxProfiledBytes / 10, static_cast<char>('a' + i % 26)));
    profiler.EndRow(1);
  }
  const ColumnProfile column = profiler.Finish();
  EXPECT_EQ(column.distinct, 10u);
  EXPECT_TRUE(column.more_distinct);
}

TEST_F(ProfileTest, CellsWithSeveralWordsAreLists) {
  const ColumnProfile tags = Column({"a|b|c", "c", "", "b|a", "a|c", "b|c", "a", "c|b|a", "b|a|c"});
  EXPECT_TRUE(tags.is_list());
  EXPECT_EQ(tags.separator, '|');
  EXPECT_THAT(tags.words, ElementsAre(Pair("a", 6), Pair("c", 6), Pair("b", 5)));
  EXPECT_EQ(tags.values, 17u);
  EXPECT_EQ(tags.missing, 1u);
  EXPECT_EQ(tags.least_in_row, 0u);
  EXPECT_EQ(tags.most_in_row, 3u);
  const ColumnProfile pairs = Column({"a;b", "b;c", "c;a", "a;c", "c;b", "b;a"});
  EXPECT_EQ(pairs.separator, ';');
}

TEST_F(ProfileTest, TextWithABarInItIsNoList) {
  const std::vector<std::vector<std::string>> columns = {
      {"m|1", "m|2", "f|1", "f|2", "m|3", "f|3"},                         // parts of a code
      {"0|1|0", "1|1|1", "0|0|1", "1|0|0", "0|1|1", "1|0|1"},             // numbers by place
      {"one | home", "two | home", "three", "one | work", "two | work"},  // titles
      {"a|b", "c", "d", "a", "b", "c", "d", "a|b"},                       // mostly single words
      {"Rise | A", "Fall|B", "Sun|C", "Moon|D", "Star|E"},                // nothing comes again
      {"a|", "a|b|", "b|a|", "c|", "a|c|", "b|c|a|"},                     // an empty word
  };
  for (const std::vector<std::string>& values : columns) {
    const ColumnProfile column = Column(values);
    EXPECT_FALSE(column.is_list()) << values[0];
    EXPECT_EQ(column.separator, '\0') << values[0];
  }
  const Profile label = Read("y\na|b\nb|a\na|c\nc|a\nb|c\nc|b\n", "y");
  EXPECT_FALSE(label.columns[0].is_list()) << "classes are whole cells";
}

TEST_F(ProfileTest, DataWithoutAHeaderGetsNames) {
  const Profile profile = Read("39, Private,x\n50, ?,y\n38, Private,x\n");
  EXPECT_THAT(profile.names(), ElementsAre("c1", "c2", "c3"));
  EXPECT_THAT(profile.format.columns, ElementsAre("c1", "c2", "c3"));
  EXPECT_EQ(profile.rows, 3u);
}

TEST_F(ProfileTest, SpacesAfterCommasAreTrimmed) {
  const Profile profile = Read("39, Private, Male\n50, ?, Female\n38, Private, Male\n");
  EXPECT_EQ(profile.format.trim, true);
  EXPECT_THAT(profile.columns[1].words, ElementsAre(Pair("Private", 2)));
  EXPECT_THAT(profile.columns[1].marks, ElementsAre(Pair("?", 1)));
}

TEST_F(ProfileTest, HeadersAreFound) {
  EXPECT_TRUE(HasHeader({{"age", "job"}, {"3", "clerk"}, {"4", "smith"}}, ""));
  EXPECT_FALSE(HasHeader({{"3", "clerk"}, {"4", "smith"}}, ""));
  EXPECT_TRUE(HasHeader({{"job", "town"}, {"clerk", "Rome"}, {"smith", "Bonn"}}, ""));
  EXPECT_FALSE(HasHeader({{"clerk", "Rome"}, {"smith", "Bonn"}, {"clerk", "Bonn"}}, ""));
  EXPECT_TRUE(HasHeader({{"x", "x"}, {"3", "4"}, {"4", "5"}}, "")) << "a name occurs twice";
  EXPECT_TRUE(HasHeader({{"", "x"}, {"0", "4"}, {"1", "5"}}, "")) << "an index has no name";
  EXPECT_TRUE(HasHeader({{"0", "1", "y"}, {"3", "4", "no"}}, "y"))
      << "the wanted name is in the first row";
  EXPECT_FALSE(HasHeader({{"0", "1", "y"}, {"3", "4", "no"}}, "z"));
  EXPECT_FALSE(HasHeader({{"?", "a"}, {"3", "b"}, {"?", "a"}}, "")) << "a mark is not a name";
}

TEST_F(ProfileTest, AColumnWithoutANameIsCalledByItsPlace) {
  std::vector<std::string> notes;
  ASSERT_TRUE(io::WriteFileAtomically(*files_, "data.csv", ",x,c1,\n0,1,a,\n1,2,b,\n").ok());
  const auto profile = ProfileData(
      *files_, {.patterns = {"data.csv"}, .wanted = "x", .note = [&notes](const std::string& note) {
                  notes.push_back(note);
                }});
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->names(), ElementsAre("c1_", "x", "c1", "c4"));
  EXPECT_THAT(notes, ElementsAre("the header of data.csv has no name for column c1_, c4, which is "
                                 "called by its place"));
}

TEST_F(ProfileTest, TabsAreFound) {
  const Profile profile = Read("a\tb\n1\tx\n2\ty\n", "", "data.tsv");
  EXPECT_THAT(profile.names(), ElementsAre("a", "b"));
}

TEST_F(ProfileTest, AColumnThatOccursTwiceIsLeftOut) {
  const Profile profile = Read("age,b,age\n1,x,2\n");
  EXPECT_THAT(profile.names(), ElementsAre("b"));
  EXPECT_THAT(profile.left_out, ElementsAre("age"));
}

TEST_F(ProfileTest, JsonLines) {
  const Profile profile =
      Read("{\"a\": 1, \"b\": [\"x\", \"y\"], \"c\": 1, \"d\": {}}\n{\"a\": 2.5, \"b\": []}\n", "",
           "data.jsonl");
  EXPECT_THAT(profile.names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(profile.left_out, ElementsAre("d"));
  EXPECT_EQ(profile.columns[0].kind, Kind::kFloat);
  EXPECT_TRUE(profile.columns[1].is_list());
  EXPECT_EQ(profile.columns[1].missing, 1u);
  EXPECT_EQ(profile.columns[2].missing, 1u);
}

TEST_F(ProfileTest, NumbersInQuotesOfJsonLines) {
  const Profile profile =
      Read("{\"a\": \"1\"}\n{\"a\": \"\"}\n{\"a\": \"2.5\"}\n", "", "data.jsonl");
  EXPECT_EQ(profile.columns[0].kind, Kind::kFloat);
  EXPECT_EQ(profile.columns[0].missing, 1u);
}

TEST_F(ProfileTest, NumbersOfWhichSomeAreInQuotes) {
  for (const char* const rows :
       {"{\"a\": \"1.5\"}\n{\"a\": 2}\n", "{\"a\": 2}\n{\"a\": \"1.5\"}\n"}) {
    const Profile profile = Read(rows, "", "data.jsonl");
    ASSERT_THAT(profile.names(), ElementsAre("a"));
    EXPECT_EQ(profile.columns[0].numbers.mean, 1.75);
  }
  EXPECT_THAT(
      Read("{\"a\": 1, \"b\": 1}\n{\"a\": \"2\"}\n{\"a\": \"x\"}\n", "", "data.jsonl").left_out,
      ElementsAre("a"));
}

TEST_F(ProfileTest, DataWithoutRowsIsRefused) {
  EXPECT_FALSE(Try("a,b\n").ok());
  EXPECT_FALSE(Try("").ok());
}

}  // namespace
}  // namespace muster::data
