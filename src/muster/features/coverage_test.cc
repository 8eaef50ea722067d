#include "muster/features/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::features {
namespace {

using formats::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FeatureSpec People() {
  FeatureSpec spec;
  const auto field = [&](const char* name, ValueType type, bool list = false) {
    formats::Field& added = spec.schema.fields.emplace_back();
    added.name = name;
    added.type = type;
    added.list = list;
  };
  const auto column = [&](const char* name, ColumnKind kind) -> ColumnSpec& {
    ColumnSpec& added = spec.columns.emplace_back();
    added.name = added.input = name;
    added.kind = kind;
    return added;
  };
  field("sex", ValueType::kString);
  field("day", ValueType::kInt);
  field("zone", ValueType::kInt);
  field("city", ValueType::kString);
  field("tags", ValueType::kString, true);
  column("sex", ColumnKind::kVocabulary).words = {"Female", "Male"};
  ColumnSpec& day = column("day", ColumnKind::kVocabulary);
  day.words = {"1", "2"};
  day.oov_buckets = 3;
  ColumnSpec& zone = column("zone", ColumnKind::kIdentity);
  zone.buckets = 5;
  zone.default_id = 0;
  column("city", ColumnKind::kHash).buckets = 7;
  column("tags", ColumnKind::kVocabulary).words = {"red"};
  return spec;
}

struct Person {
  std::string sex;
  int64_t day = 0, zone = 0;
  std::string city;
  std::vector<std::string> tags;
};

formats::Columns GetRows(const FeatureSpec& spec, const std::vector<Person>& people) {
  formats::Columns rows(spec.schema);
  for (const Person& person : people) {
    rows.mutable_column(0).strings.push_back(rows.Store(person.sex));
    rows.mutable_column(1).ints.push_back(person.day);
    rows.mutable_column(2).ints.push_back(person.zone);
    rows.mutable_column(3).strings.push_back(rows.Store(person.city));
    for (const std::string& tag : person.tags) {
      rows.mutable_column(4).strings.push_back(rows.Store(tag));
    }
    rows.AddRow();
  }
  return rows;
}

TEST(IdCoverageTest, CountsRowsWithoutARegularId) {
  const FeatureSpec spec = People();
  IdCoverage coverage(spec);
  coverage.Add(GetRows(spec, {{"Female", 1, 4, "Oslo", {"x", "red"}},
                              {"female", 3, 5, "", {}},
                              {"", -1, -1, "Rome", {"", "y"}},
                              {"male", 3, 9, "Oslo", {"red"}}}));
  coverage.Add(GetRows(spec, {{"female", 2, 0, "", {"a"}}, {"FEMALE", 3, 7, "x", {"b", "c"}}}));
  EXPECT_EQ(coverage.rows(), 6u);
  std::vector<uint64_t> without;
  for (const IdCoverage::Column& column : coverage.columns()) without.push_back(column.without);
  EXPECT_THAT(without, ElementsAre(5, 4, 4, 2, 4));
  EXPECT_THAT(coverage.columns()[0].values, ElementsAre("'female'", "''", "'male'"));
  EXPECT_THAT(coverage.columns()[1].values, ElementsAre("3", "-1"));
  EXPECT_THAT(coverage.columns()[2].values, ElementsAre("5", "-1", "9"));
  EXPECT_THAT(coverage.columns()[4].values, ElementsAre("''", "'y'", "'a'"));
}

TEST(CoverageWatchTest, WarnsOnceAboutColumnsThatMatchNothing) {
  const FeatureSpec spec = People();
  CoverageWatch watch(spec);
  // Column `city` knows one row in a hundred and causes no warning; `sex` knows one in 200 and
  // does.
  std::vector<Person> people(200, Person{"female", 1, 1, "", {"red"}});
  people[7].sex = "Female";
  people[7].city = people[70].city = "Oslo";
  for (int i = 0; i < 49; ++i) watch.Add(GetRows(spec, people));
  EXPECT_THAT(watch.ConsumeWarnings(/*ended=*/false), IsEmpty());
  people[8].sex = "male";
  watch.Add(GetRows(spec, people));
  EXPECT_THAT(watch.ConsumeWarnings(/*ended=*/false),
              ElementsAre("column 'sex' finds no id in 99.5 % of the first 10000 rows: values seen "
                          "are 'female', 'male', its words are 'Female', 'Male' (compared byte by "
                          "byte)"));
  watch.Add(GetRows(spec, people));
  EXPECT_THAT(watch.ConsumeWarnings(/*ended=*/true), IsEmpty());
}

TEST(CoverageWatchTest, DataThatEndsEarlierIsEnough) {
  const FeatureSpec spec = People();
  CoverageWatch watch(spec);
  EXPECT_THAT(watch.ConsumeWarnings(/*ended=*/true), IsEmpty())
      << "without rows there must be no warning";
  watch.Add(GetRows(spec, {{"Female", 1, 8, "", {}}}));
  const std::vector<std::string> warnings = watch.ConsumeWarnings(/*ended=*/true);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_THAT(warnings[0], HasSubstr("column 'zone' finds no id in 100 % of the first 1 rows: "
                                     "values seen are 8, its ids are 0 to 4"));
  EXPECT_THAT(warnings[1], HasSubstr("values seen are '', an empty value has no id"));
  EXPECT_THAT(warnings[2], HasSubstr("values seen are none, its words are 'red'"));
}

}  // namespace
}  // namespace muster::features
