#include "muster/features/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::features {
namespace {

using formats::Columns;
using formats::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Inputs x (float) and n (int), and columns over them that are to be measured.
class MeasureTest : public testing::Test {
 protected:
  MeasureTest() {
    spec_.schema.fields.resize(2);
    spec_.schema.fields[0].name = "x";
    spec_.schema.fields[0].type = ValueType::kFloat;
    spec_.schema.fields[1].name = "n";
    spec_.schema.fields[1].type = ValueType::kInt;
  }

  ColumnSpec& Add(const std::string& name, const std::string& input) {
    ColumnSpec& column = spec_.columns.emplace_back();
    column.name = name;
    column.input = input;
    column.to_measure = true;
    return column;
  }
  const ColumnSpec& Named(std::string_view name) const { return *spec_.Find(name); }

  // Measures the rows `xs`; NaN stands for a row without a value.
  std::vector<std::string> Run(const std::vector<float>& xs) {
    Measure measure(spec_);
    Columns rows(measure.schema());
    for (const float x : xs) {
      for (int field = 0; field < static_cast<int>(measure.schema().fields.size()); ++field) {
        formats::Column& column = rows.mutable_column(field);
        if (std::isnan(x)) continue;
        if (measure.schema().fields[static_cast<size_t>(field)].type == ValueType::kInt) {
          column.ints.push_back(static_cast<int64_t>(x));
        } else {
          column.floats.push_back(x);
        }
      }
      rows.AddRow();
    }
    int bad_row = -1;
    EXPECT_TRUE(measure.Add(rows, &bad_row).ok());
    return measure.Apply(&spec_);
  }

  FeatureSpec spec_;
};

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

TEST_F(MeasureTest, MeanAndDeviationAreThoseOfTheValuesThatArePresent) {
  Add("x", "x").normalize = true;
  EXPECT_EQ(FindUnmeasured(spec_), "x");
  EXPECT_THAT(Run({1, kNone, 3, 5, 7}), IsEmpty());
  EXPECT_EQ(FindUnmeasured(spec_), "");
  EXPECT_TRUE(DependsOnData(spec_));
  EXPECT_DOUBLE_EQ(Named("x").mean, 4);
  EXPECT_DOUBLE_EQ(Named("x").stddev, std::sqrt(5.0));
}

TEST_F(MeasureTest, ClipsFirstThenImputesThenTakesLogarithms) {
  ColumnSpec& x = Add("x", "x");
  x.normalize = x.log1p = true;
  x.clip_low = 0;
  x.clip_high = 7;
  x.impute = Impute::kMean;
  Run({-5, 1000, 3, kNone});  // clipped: 0, 7, 3
  EXPECT_FLOAT_EQ(static_cast<float>(Named("x").mean),
                  static_cast<float>((std::log(8.0) + std::log(4.0)) / 3));
  EXPECT_NEAR(Named("x").imputed, 10.0 / 3, 1e-12);
  EXPECT_TRUE(spec_.schema.fields[0].has_default);
  EXPECT_FLOAT_EQ(std::get<float>(spec_.schema.fields[0].default_value), 10.0F / 3);
}

TEST_F(MeasureTest, TheMedianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  Add("x", "x").impute = Impute::kMedian;
  Add("n", "n").impute = Impute::kMedian;
  FeatureSpec odd = spec_;
  Run({9, 1, kNone, 4, 100});
  EXPECT_EQ(Named("x").imputed, 6.5);
  // For an int the number is rounded.
  EXPECT_EQ(std::get<int64_t>(spec_.schema.fields[1].default_value), 7);
  spec_ = odd;
  Run({9, 1, 100});
  EXPECT_EQ(Named("x").imputed, 9);
}

TEST_F(MeasureTest, TheMedianOfManyValuesIsThatOfASample) {
  Add("x", "x").impute = Impute::kMedian;
  Measure measure(spec_);
  constexpr int kRows = 1 << 16, kTimes = 40;  // more than 2^21 values: 0, 1, 2, ...
  for (int i = 0; i < kTimes; ++i) {
    Columns rows(measure.schema());
    for (int row = 0; row < kRows; ++row) {
      rows.mutable_column(0).floats.push_back(static_cast<float>(i * kRows + row));
      rows.AddRow();
    }
    int bad_row = -1;
    ASSERT_TRUE(measure.Add(rows, &bad_row).ok());
  }
  measure.Apply(&spec_);
  // With a sample of 2^20 values the median's rank is off by 1 / 2^11 of the values (one standard
  // deviation).
  const double expected = kRows * kTimes / 2.0;
  EXPECT_NEAR(Named("x").imputed, expected, expected * 0.005);
}

TEST_F(MeasureTest, AColumnOfEqualOrNoValuesHasDeviationOne) {
  Add("x", "x").normalize = true;
  EXPECT_THAT(Run({3, 3, 3}), IsEmpty());
  EXPECT_EQ(Named("x").mean, 3);
  EXPECT_EQ(Named("x").stddev, 1);
  spec_.columns.clear();
  Add("x", "x").normalize = true;
  EXPECT_THAT(Run({kNone, kNone}), ElementsAre("x"));
  EXPECT_EQ(Named("x").mean, 0);
  EXPECT_EQ(Named("x").stddev, 1);
}

TEST_F(MeasureTest, AValueThatIsNotFiniteIsAnErrorOfItsRow) {
  Add("x", "x").normalize = true;
  Measure measure(spec_);
  Columns rows(measure.schema());
  for (const float x : {1.0F, kNone}) {
    rows.mutable_column(0).floats.push_back(x);
    rows.AddRow();
  }
  int bad_row = -1;
  const absl::Status status = measure.Add(rows, &bad_row);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("column 'x'"));
  EXPECT_EQ(bad_row, 1);
  EXPECT_THAT(measure.Apply(&spec_), ElementsAre("x"))
      << "no value of these rows may have been added";
}

TEST_F(MeasureTest, NumbersAreCopiedForColumnsThatAreOtherwiseTheSame) {
  Add("x", "x").normalize = true;
  Add("n", "n").normalize = true;
  Add("i", "x").impute = Impute::kMean;
  const FeatureSpec before = spec_;
  Run({1, 3});
  FeatureSpec other = before;
  const_cast<ColumnSpec*>(other.Find("n"))->log1p = true;
  CopyMeasured(spec_, &other);
  EXPECT_EQ(*other.Find("x"), Named("x"));
  EXPECT_EQ(*other.Find("i"), Named("i"));
  EXPECT_EQ(other.schema, spec_.schema) << "the schema includes the imputed default";
  EXPECT_EQ(FindUnmeasured(other), "n");
  EXPECT_NE(PrintMeasured(other), PrintMeasured(spec_));
  CopyMeasured(before, &other);  // `before` has no numbers
  EXPECT_EQ(FindUnmeasured(other), "n");
}

}  // namespace
}  // namespace muster::features
