#include "muster/data/column_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "muster/formats/csv.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ColumnStatsTest, CountsAndMoments) {
  formats::Schema schema;
  for (const auto type :
       {formats::ValueType::kInt, formats::ValueType::kFloat, formats::ValueType::kString}) {
    formats::Field field;
    field.name = StrCat("c", schema.fields.size());
    field.type = type;
    field.missing = {"?"};
    schema.fields.push_back(field);
  }
  schema.fields[0].has_default = true;
  schema.fields[0].default_value = int64_t{-1};
  ColumnStats stats(schema);
  auto decoder = *formats::NewCsvDecoder(stats.schema(), {"c0", "c1", "c2"});
  formats::Columns columns(stats.schema());
  for (const char* row : {"2,1.5,b", "4,?,a|x", "?,,b", "6,2.5,"}) {
    ASSERT_TRUE(decoder->Decode(row, &columns).ok()) << row;
    if (columns.rows() == 2) {
      stats.Add(columns);
      columns.Clear();
    }
  }
  EXPECT_EQ(stats.rows(), 4u);
  const auto summary = stats.Summarize(1);
  EXPECT_EQ(summary[0].values, 3u);
  EXPECT_EQ(summary[0].missing, 1u) << "the default must not count as a value";
  EXPECT_EQ(summary[0].min, 2);
  EXPECT_EQ(summary[0].max, 6);
  EXPECT_DOUBLE_EQ(summary[0].mean, 4);
  EXPECT_DOUBLE_EQ(summary[0].stddev, std::sqrt(8.0 / 3));
  EXPECT_EQ(summary[1].missing, 2u);
  EXPECT_DOUBLE_EQ(summary[1].stddev, 0.5);
  EXPECT_EQ(summary[2].distinct, 2u) << "'a|x' must count as one value";
  EXPECT_EQ(summary[2].missing, 1u);
  EXPECT_THAT(summary[2].top, ElementsAre(Pair("b", 2)));
  EXPECT_THAT(stats.Summarize(9)[2].top, ElementsAre(Pair("b", 2), Pair("a|x", 1)));
  EXPECT_THAT(stats.Summarize(0)[2].top, IsEmpty());
}

}  // namespace
}  // namespace muster::data
