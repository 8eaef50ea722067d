// Tests labels in each form, and weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "muster/features/transform.h"

namespace muster::features {
namespace {

using formats::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;

using Texts = std::vector<std::vector<std::string>>;
using Ints = std::vector<std::vector<int64_t>>;
using Floats = std::vector<std::vector<float>>;

// A list field y and a weight w; each row has a label.
class LabelTest : public testing::Test {
 protected:
  LabelTest() { spec_.schema.fields.resize(2); }

  void SetForm(ValueType type, LabelSpec label, bool list = true) {
    spec_.schema.fields[0] = {
        .name = "y", .type = type, .list = list, .default_value = {}, .missing = {}};
    spec_.schema.fields[1] = {
        .name = "w", .type = ValueType::kFloat, .default_value = {}, .missing = {}};
    spec_.label = std::move(label);
    spec_.label.input = "y";
  }

  template <typename Lists>
  absl::Status Apply(const Lists& rows, const std::vector<float>& weights = {}) {
    auto transform = FeatureTransform::Create(spec_, {});
    if (!transform.ok()) return transform.status();
    formats::Columns columns(spec_.schema);
    for (size_t i = 0; i < rows.size(); ++i) {
      formats::Column& y = columns.mutable_column(0);
      for (const auto& value : rows[i]) {
        if constexpr (std::is_same_v<Lists, Ints>) y.ints.push_back(value);
        if constexpr (std::is_same_v<Lists, Floats>) y.floats.push_back(value);
        if constexpr (std::is_same_v<Lists, Texts>) y.strings.push_back(columns.Store(value));
      }
      columns.mutable_column(1).floats.push_back(weights.empty() ? 1 : weights[i]);
      columns.AddRow();
    }
    bad_row_ = 100;
    return (*transform)->Apply(columns, /*with_labels=*/true, &batch_, &bad_row_);
  }
  template <typename Lists>
  std::string Error(const Lists& rows, const std::vector<float>& weights = {}) {
    const absl::Status status = Apply(rows, weights);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  FeatureSpec spec_;
  FeatureBatch batch_;
  int bad_row_ = 0;
};

TEST_F(LabelTest, VectorsOfFloats) {
  SetForm(ValueType::kFloat, {.form = LabelSpec::Form::kVector, .width = 2});
  ASSERT_TRUE(Apply(Floats{{1, 2}, {-3, 0.5f}}).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(1, 2, -3, 0.5f));
  EXPECT_TRUE(batch_.weights.empty());
  EXPECT_THAT(Error(Floats{{1, 2}, {3}}), HasSubstr("label 'y': 1 values, the head needs 2"));
  EXPECT_EQ(bad_row_, 1);
  // A row with too many and one with too few values in one batch do not cancel out.
  EXPECT_THAT(Error(Floats{{1}, {1, 2, 3}}), HasSubstr("label 'y': 1 values"));
  EXPECT_THAT(Error(Floats{{1, 2}, {3, NAN}}), HasSubstr("label 'y': the value nan"));
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(LabelTest, VectorsOfInts) {
  SetForm(ValueType::kInt, {.form = LabelSpec::Form::kVector, .width = 3});
  ASSERT_TRUE(Apply(Ints{{0, 1, 1}}).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(0, 1, 1));
}

TEST_F(LabelTest, SetsOfWords) {
  SetForm(ValueType::kString,
          {.words = {"ant", "bee", "cat"}, .form = LabelSpec::Form::kSet, .width = 3});
  ASSERT_TRUE(Apply(Texts{{"cat", "ant"}, {}, {"bee", "bee"}}).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(1, 0, 1, 0, 0, 0, 0, 1, 0));
  EXPECT_THAT(
      Error(Texts{{"ant"}, {"bee", "cart"}}),
      HasSubstr("label 'y': the value 'cart' is not one of its words (did you mean 'cat'?)"));
  EXPECT_EQ(bad_row_, 1);
  // There are more values than fit a block of lookups.
  Texts many(200, {"ant", "bee", "cat"});
  many[150] = {"cat"};
  ASSERT_TRUE(Apply(many).ok());
  EXPECT_EQ(batch_.labels.size(), 600u);
  EXPECT_EQ(std::count(batch_.labels.begin(), batch_.labels.end(), 1.0f), 598);
  EXPECT_EQ(batch_.labels[450], 0);
  EXPECT_EQ(batch_.labels[452], 1);
}

TEST_F(LabelTest, MinusOneIsAClassIfItIsOneOfTheWords) {
  for (const bool list : {false, true}) {
    SetForm(ValueType::kInt, {.words = {"-1", "1"}}, list);
    if (list) {
      spec_.label.form = LabelSpec::Form::kSet;
      spec_.label.width = 2;
    }
    ASSERT_TRUE(Apply(Ints{{-1}, {1}, {-1}}).ok());
    if (list) {
      EXPECT_THAT(batch_.labels, ElementsAre(1, 0, 0, 1, 1, 0));
    } else {
      EXPECT_THAT(batch_.labels, ElementsAre(0, 1, 0));
    }
  }
  SetForm(ValueType::kInt, {.words = {"0", "1"}}, /*list=*/false);
  EXPECT_THAT(Error(Ints{{1}, {-1}}), HasSubstr("the value '-1' is not one of its words"));
}

TEST_F(LabelTest, SetsOfIds) {
  SetForm(ValueType::kInt, {.form = LabelSpec::Form::kSet, .width = 3});
  ASSERT_TRUE(Apply(Ints{{2, 0}, {}}).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(1, 0, 1, 0, 0, 0));
  EXPECT_THAT(Error(Ints{{0}, {3}}), HasSubstr("label 'y': 3 is not a class of 0 to 2"));
  EXPECT_THAT(Error(Ints{{-1}}), HasSubstr("label 'y': -1 is not a class"));
}

TEST_F(LabelTest, Weights) {
  SetForm(ValueType::kInt, {}, /*list=*/false);
  spec_.weight = "w";
  ASSERT_TRUE(Apply(Ints{{1}, {0}, {1}}, {0, 2.5f, 1}).ok());
  EXPECT_THAT(batch_.weights, ElementsAre(0, 2.5f, 1));
  EXPECT_THAT(Error(Ints{{1}, {0}}, {1, -0.5f}), HasSubstr("weight 'w': the weight -0.5"));
  EXPECT_EQ(bad_row_, 1);
  EXPECT_THAT(Error(Ints{{1}, {0}}, {NAN, 1}), HasSubstr("the weight nan"));
}

TEST_F(LabelTest, FormsThatDoNotFitTheFieldAreRefused) {
  SetForm(ValueType::kFloat, {.form = LabelSpec::Form::kVector, .width = 2}, /*list=*/false);
  EXPECT_THAT(std::string(Validate(spec_).message()), HasSubstr("needs to be a list"));
  SetForm(ValueType::kFloat, {.form = LabelSpec::Form::kSet, .width = 2});
  EXPECT_THAT(std::string(Validate(spec_).message()),
              HasSubstr("'ids: true' needs a list of ints"));
  SetForm(ValueType::kString, {.words = {"a"}, .form = LabelSpec::Form::kSet, .width = 2});
  EXPECT_THAT(std::string(Validate(spec_).message()), HasSubstr("1 words for 2 classes"));
  SetForm(ValueType::kInt, {}, /*list=*/false);
  spec_.weight = "ww";
  EXPECT_THAT(std::string(Validate(spec_).message()),
              HasSubstr("weight 'ww': unknown input (did you mean 'w'?)"));
}

}  // namespace
}  // namespace muster::features
