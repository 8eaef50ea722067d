#include "muster/features/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace muster::features {
namespace {

using formats::Columns;
using formats::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;

formats::Field GetField(std::string name, ValueType type, bool list = false) {
  formats::Field field;
  field.name = std::move(name);
  field.type = type;
  field.list = list;
  return field;
}

// Fields s, i, x, list ss and label y, with columns over them.
class TransformTest : public testing::Test {
 protected:
  TransformTest() {
    spec_.schema.fields = {GetField("s", ValueType::kString), GetField("i", ValueType::kInt),
                           GetField("x", ValueType::kFloat),
                           GetField("ss", ValueType::kString, true),
                           GetField("y", ValueType::kString)};
    ColumnSpec& words = Add("words", ColumnKind::kVocabulary, "s");
    words.words = {"a", "b"};
    Add("identity", ColumnKind::kIdentity, "i").buckets = 5;
    Add("scaled", ColumnKind::kNumeric, "x").mean = 2;
    Named("scaled").stddev = 4;
    Add("log", ColumnKind::kNumeric, "x").log1p = true;
    Add("int_number", ColumnKind::kNumeric, "i");
    Add("tags", ColumnKind::kVocabulary, "ss").words = {"red", "green"};
    Add("one_hot", ColumnKind::kIndicator, "words");
    Add("many_hot", ColumnKind::kIndicator, "tags");
    Add("embedding", ColumnKind::kEmbedding, "words").dimension = 2;
    spec_.label = {"y", {"no", "yes"}};
  }

  ColumnSpec& Add(std::string name, ColumnKind kind, std::string input) {
    ColumnSpec column;
    column.name = std::move(name);
    column.kind = kind;
    column.input = std::move(input);
    spec_.columns.push_back(column);
    return spec_.columns.back();
  }

  ColumnSpec& Named(std::string_view name) { return const_cast<ColumnSpec&>(*spec_.Find(name)); }

  struct Row {
    std::string_view s = "a";
    int64_t i = 1;
    float x = 0;
    std::vector<std::string_view> ss = {};
    std::string_view y = "no";
  };

  absl::Status Apply(const FeatureRequest& request, const std::vector<Row>& rows,
                     bool with_labels = false) {
    auto transform = FeatureTransform::Create(spec_, request);
    EXPECT_TRUE(transform.ok()) << transform.status();
    Columns columns(spec_.schema);
    for (const Row& row : rows) {
      columns.mutable_column(0).strings.push_back(row.s);
      columns.mutable_column(1).ints.push_back(row.i);
      columns.mutable_column(2).floats.push_back(row.x);
      for (const std::string_view value : row.ss) {
        columns.mutable_column(3).strings.push_back(value);
      }
      columns.mutable_column(4).strings.push_back(row.y);
      columns.AddRow();
    }
    return (*transform)->Apply(columns, with_labels, &batch_, &bad_row_);
  }

  FeatureSpec spec_;
  FeatureBatch batch_;
  int bad_row_ = -2;
};

TEST_F(TransformTest, ClipsBeforeItTakesLogarithms) {
  Named("log").clip_low = 0;
  Named("log").clip_high = 7;
  ASSERT_TRUE(Apply({{"log"}, {}}, {{.x = -3}, {.x = 3}, {.x = 1e9F}}).ok());
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(0, std::log1p(3.0F), std::log1p(7.0F)));
}

// float32 counts seconds since 1970 in steps of 128.
TEST_F(TransformTest, LongNumbersKeepTheirLastDigits) {
  ColumnSpec& column = Named("int_number");
  column.mean = 1'709'287'350;
  column.stddev = 2;
  const std::vector<Row> rows = {{.i = 1'709'287'351}, {.i = 1'709'287'347}, {.i = 0}};
  ASSERT_TRUE(Apply({{"int_number"}, {}}, rows).ok());
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(0.5F, -1.5F, -1'709'287'350.0F / 2));
  column.mean = 1'709'287'350.5;  // what is left of the mean is subtracted as a float
  ASSERT_TRUE(Apply({{"int_number"}, {}}, rows).ok());
  EXPECT_THAT(batch_.dense[0].values, testing::Contains(0.25F));
  // What comes before the mean sees floats, and a small mean is subtracted as TensorFlow does it.
  column.clip_low = 0;
  column.clip_high = 2e9F;
  EXPECT_EQ(GetWholeMean(column), 0);
  ColumnSpec other;
  for (const double mean : {2.5, 1e300}) {
    other.mean = mean;
    EXPECT_EQ(GetWholeMean(other), 0) << mean;
  }
}

TEST_F(TransformTest, AFlagMarksMissingValues) {
  spec_.schema.fields[2].has_default = spec_.schema.fields[2].mark_missing = true;
  spec_.schema.fields[2].default_value = 6.0F;
  Named("scaled").missing_flag = true;
  EXPECT_EQ(spec_.Width(Named("scaled")), 2);
  const auto transform = FeatureTransform::Create(spec_, {{"scaled"}, {}});
  ASSERT_TRUE(transform.ok()) << transform.status();
  Columns columns(spec_.schema);
  for (int row = 0; row < 3; ++row) {
    columns.mutable_column(0).strings.emplace_back("a");
    columns.mutable_column(1).ints.push_back(1);
    if (row == 1) {
      columns.AppendDefault(2, spec_.schema.fields[2]);
    } else {
      columns.mutable_column(2).floats.push_back(6);
    }
    columns.mutable_column(4).strings.emplace_back("no");
    columns.AddRow();
  }
  ASSERT_TRUE((*transform)->Apply(columns, false, &batch_, &bad_row_).ok());
  EXPECT_EQ(batch_.dense[0].width, 2);
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(1, 0, 1, 1, 1, 0));
}

TEST_F(TransformTest, ColumnsThatWereNotMeasuredAreRefused) {
  Named("scaled").normalize = Named("scaled").to_measure = true;
  EXPECT_TRUE(FeatureTransform::Create(spec_, {{"log"}, {}}).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(FeatureTransform::Create(spec_, {{"scaled"}, {}}).status()));
}

TEST_F(TransformTest, ScalesInFloat32) {
  ASSERT_TRUE(Apply({.dense = {"scaled", "log", "int_number"}, .categorical = {}},
                    {{.i = -7, .x = 3}, {.i = 16777217, .x = 0.1F}})
                  .ok());
  EXPECT_EQ(batch_.rows, 2);
  EXPECT_EQ(bad_row_, -1);
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(0.25F, (0.1F - 2.0F) / 4.0F));
  EXPECT_THAT(batch_.dense[1].values, ElementsAre(std::log1p(3.0F), std::log1p(0.1F)));
  EXPECT_THAT(batch_.dense[2].values, ElementsAre(-7.0F, 16777216.0F));
}

TEST_F(TransformTest, KeepsTheOrderOfTheRequest) {
  ASSERT_TRUE(Apply({.dense = {"log", "scaled"}, .categorical = {"identity", "words"}},
                    {{.s = "b", .i = 4, .x = 2}})
                  .ok());
  EXPECT_THAT(batch_.dense[1].values, ElementsAre(0.0F));
  EXPECT_THAT(batch_.id_lists[0].ids, ElementsAre(4));
  EXPECT_THAT(batch_.id_lists[1].ids, ElementsAre(1));
}

TEST_F(TransformTest, CountsIndicators) {
  ASSERT_TRUE(Apply({.dense = {"one_hot", "many_hot"}, .categorical = {"tags"}},
                    {{.s = "b", .ss = {"green", "red", "green"}},
                     {.s = "", .ss = {}},
                     {.s = "unknown", .ss = {"blue", "red"}}})
                  .ok());
  EXPECT_EQ(batch_.dense[0].width, 2);
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_THAT(batch_.dense[1].values, ElementsAre(1, 2, 0, 0, 1, 0));
  EXPECT_FALSE(batch_.id_lists[0].one_per_row());
  EXPECT_THAT(batch_.id_lists[0].ids, ElementsAre(1, 0, 1, -1, 0));
  EXPECT_THAT(batch_.id_lists[0].offsets, ElementsAre(0, 3, 3, 5));
}

TEST_F(TransformTest, EmptyBatch) {
  ASSERT_TRUE(Apply({.dense = {"one_hot"}, .categorical = {"words", "tags"}}, {}, true).ok());
  EXPECT_EQ(batch_.rows, 0);
  EXPECT_TRUE(batch_.labels.empty());
  EXPECT_THAT(batch_.id_lists[1].offsets, ElementsAre(0));
}

TEST_F(TransformTest, ALabelIsTheIndexOfItsWord) {
  ASSERT_TRUE(Apply({}, {{.y = "yes"}, {.y = "no"}}, true).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(1, 0));
  ASSERT_TRUE(Apply({}, {{.y = "yes"}}, false).ok());
  EXPECT_THAT(batch_.labels, ElementsAre());
}

TEST_F(TransformTest, NumericLabelsAreUnchanged) {
  spec_.label = {"i", {}};
  ASSERT_TRUE(Apply({}, {{.i = 1}, {.i = 0}, {.i = 3}}, true).ok());
  EXPECT_THAT(batch_.labels, ElementsAre(1, 0, 3));
  spec_.label = {"i", {"10", "-1"}};
  ASSERT_FALSE(Apply({}, {{.i = 10}, {.i = 11}}, true).ok());
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(TransformTest, AnUnknownLabelIsReported) {
  const absl::Status status = Apply({}, {{.y = "yes"}, {.y = "noo"}}, true);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "label 'y': the value 'noo' is not one of its words (did you mean 'no'?)");
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(TransformTest, ALabelThatIsNotFiniteIsReported) {
  spec_.label = {"x", {}};
  const absl::Status status = Apply({}, {{.x = std::nanf("")}}, true);
  EXPECT_EQ(status.message(), "label 'x': the value nan is not finite; mend or leave out the row");
  EXPECT_EQ(bad_row_, 0);
}

TEST_F(TransformTest, LabelsNeedALabelInTheSpec) {
  spec_.label = {};
  EXPECT_EQ(Apply({}, {{}}, true).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bad_row_, -1);
}

TEST_F(TransformTest, NumbersThatAreNotFiniteAreReported) {
  const FeatureRequest scaled = {.dense = {"scaled"}, .categorical = {}};
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    const absl::Status status = Apply(scaled, {{.x = 1}, {.x = 2}, {.x = bad}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("column 'scaled': the value "));
    EXPECT_EQ(bad_row_, 2);
  }
}

TEST_F(TransformTest, TheLogarithmOfAMarkIsZero) {
  ASSERT_TRUE(
      Apply({.dense = {"log"}, .categorical = {}}, {{.x = -1}, {.x = -3}, {.x = -0.5}}).ok());
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(0, 0, std::log1p(-0.5F)));
}

TEST_F(TransformTest, AnIdentityOutOfRangeIsReported) {
  const FeatureRequest identity = {.dense = {}, .categorical = {"identity"}};
  const absl::Status status = Apply(identity, {{.i = 4}, {.i = -3}, {.i = 5}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("column 'identity': the value 5 is not below 5"));
  EXPECT_EQ(bad_row_, 2);
  ASSERT_TRUE(Apply(identity, {{.i = 4}, {.i = -3}, {.i = -1}}).ok());
  EXPECT_THAT(batch_.id_lists[0].ids, ElementsAre(4, -1, -1));
}

TEST_F(TransformTest, AnErrorInAListNamesItsRow) {
  spec_.schema.fields.push_back(GetField("ii", ValueType::kInt, true));
  Add("several", ColumnKind::kIdentity, "ii").buckets = 5;
  ColumnSpec& cross = Add("cross", ColumnKind::kCross, "");
  cross.keys = {"several", "s"};
  cross.buckets = 10;
  Columns rows(spec_.schema);
  for (const std::vector<int64_t>& values : std::vector<std::vector<int64_t>>{{1, 2}, {}, {3, 9}}) {
    for (const int scalar : {0, 4}) rows.mutable_column(scalar).strings.push_back("a");
    rows.mutable_column(1).ints.push_back(0);
    rows.mutable_column(2).floats.push_back(0);
    for (const int64_t value : values) rows.mutable_column(5).ints.push_back(value);
    rows.AddRow();
  }
  for (const std::string name : {"several", "cross"}) {
    auto transform = FeatureTransform::Create(spec_, {.dense = {}, .categorical = {name}});
    ASSERT_TRUE(transform.ok());
    const absl::Status status = (*transform)->Apply(rows, false, &batch_, &bad_row_);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the value 9 is not below 5"));
    EXPECT_EQ(bad_row_, 2);
  }
}

TEST_F(TransformTest, TooManyCombinationsAreRefused) {
  ColumnSpec& cross = Add("cross", ColumnKind::kCross, "");
  cross.keys = {"ss", "ss", "ss"};
  cross.buckets = 10;
  const FeatureRequest request = {.dense = {}, .categorical = {"cross"}};
  const std::vector<std::string_view> values(200, "v");
  const absl::Status status = Apply(request, {{}, {.ss = values}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("column 'cross': "));
  EXPECT_EQ(bad_row_, 1);
}

TEST_F(TransformTest, RequestsThatDoNotFitAreRefused) {
  const auto error = [&](const FeatureRequest& request) {
    return FeatureTransform::Create(spec_, request).status();
  };
  EXPECT_EQ(error({.dense = {"scale"}, .categorical = {}}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(error({.dense = {"scale"}, .categorical = {}}).message()),
              HasSubstr("no column 'scale' (did you mean 'scaled'?)"));
  EXPECT_THAT(std::string(error({.dense = {"embedding"}, .categorical = {}}).message()),
              HasSubstr("request the ids of 'words'"));
  EXPECT_THAT(std::string(error({.dense = {"words"}, .categorical = {}}).message()),
              HasSubstr("request its ids"));
  EXPECT_THAT(std::string(error({.dense = {}, .categorical = {"one_hot"}}).message()),
              HasSubstr("not categorical"));
  EXPECT_THAT(std::string(error({.dense = {"log", "log"}, .categorical = {}}).message()),
              HasSubstr("'log' is requested twice"));
  Named("log").stddev = 0;
  EXPECT_EQ(error({}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TransformTest, RowsOfAnotherSchemaAreRefused) {
  auto transform = FeatureTransform::Create(spec_, {});
  ASSERT_TRUE(transform.ok());
  formats::Schema other;
  other.fields = {GetField("s", ValueType::kString)};
  EXPECT_EQ((*transform)->Apply(Columns(other), false, &batch_, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TransformTest, SeveralThreadsMayApplyAtOnce) {
  auto transform =
      FeatureTransform::Create(spec_, {.dense = {"many_hot"}, .categorical = {"words", "tags"}});
  ASSERT_TRUE(transform.ok());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      FeatureBatch batch;
      for (int pass = 0; pass < 200; ++pass) {
        Columns rows(spec_.schema);
        for (int row = 0; row <= pass % 7 + t; ++row) {
          rows.mutable_column(0).strings.push_back(t % 2 == 0 ? "a" : "b");
          rows.mutable_column(1).ints.push_back(0);
          rows.mutable_column(2).floats.push_back(0);
          rows.mutable_column(3).strings.push_back(t < 2 ? "red" : "green");
          rows.mutable_column(4).strings.push_back("no");
          rows.AddRow();
        }
        ASSERT_TRUE((*transform)->Apply(rows, true, &batch, nullptr).ok());
        EXPECT_THAT(batch.id_lists[0].ids, testing::Each(t % 2));
        EXPECT_THAT(batch.id_lists[1].ids, testing::Each(t / 2));
      }
    });
  }
}

}  // namespace
}  // namespace muster::features
