// Tests columns of lists: several values per row with weights, of a fixed length, or as a sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "muster/features/fingerprint.h"
#include "muster/features/transform.h"

namespace muster::features {
namespace {

using formats::Columns;
using formats::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;

formats::Field ListField(std::string name, ValueType type) {
  formats::Field field;
  field.name = std::move(name);
  field.type = type;
  field.list = true;
  return field;
}

// Fields with lists of words, floats and ints, and with one word and one float per row.
class ListsTest : public testing::Test {
 protected:
  ListsTest() {
    spec_.schema.fields = {
        ListField("words", ValueType::kString), ListField("floats", ValueType::kFloat),
        ListField("ints", ValueType::kInt), ListField("word", ValueType::kString),
        ListField("number", ValueType::kFloat)};
    for (const size_t i : {3, 4}) spec_.schema.fields[i].list = false;
    Add("letters", ColumnKind::kVocabulary, "words").words = {"a", "b", "c"};
    Add("letter", ColumnKind::kVocabulary, "word").words = {"a", "b", "c"};
    Add("weighted", ColumnKind::kWeighted, "letters").weights = "floats";
    Add("counted", ColumnKind::kWeighted, "letters").weights = "ints";
    Add("weighted_letter", ColumnKind::kWeighted, "letter").weights = "number";
    Add("weighted_hot", ColumnKind::kIndicator, "weighted");
    Add("hot", ColumnKind::kIndicator, "letters");
  }

  ColumnSpec& Add(std::string name, ColumnKind kind, std::string input) {
    ColumnSpec& column = spec_.columns.emplace_back();
    column.name = std::move(name);
    column.kind = kind;
    column.input = std::move(input);
    return column;
  }

  struct Row {
    std::vector<std::string_view> words = {};
    std::vector<float> floats = {};
    std::vector<int64_t> ints = {};
    std::string_view word = "a";
    float number = 0;
  };

  absl::Status Apply(const FeatureRequest& request, const std::vector<Row>& rows) {
    auto transform = FeatureTransform::Create(spec_, request);
    EXPECT_TRUE(transform.ok()) << transform.status();
    if (!transform.ok()) return transform.status();
    Columns columns(spec_.schema);
    for (const Row& row : rows) {
      for (const auto word : row.words) columns.mutable_column(0).strings.push_back(word);
      for (const float value : row.floats) columns.mutable_column(1).floats.push_back(value);
      for (const int64_t value : row.ints) columns.mutable_column(2).ints.push_back(value);
      columns.mutable_column(3).strings.push_back(row.word);
      columns.mutable_column(4).floats.push_back(row.number);
      columns.AddRow();
    }
    return (*transform)->Apply(columns, /*with_labels=*/false, &batch_, &bad_row_);
  }

  // Returns the floats of a numeric or sequence column over field "floats".
  std::vector<float> Floats(const std::vector<std::vector<float>>& rows) {
    std::vector<Row> given;
    for (const auto& floats : rows) given.push_back({.floats = floats});
    const absl::Status status = Apply({.dense = {"column"}, .categorical = {}}, given);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? batch_.dense[0].values : std::vector<float>();
  }

  FeatureSpec spec_;
  FeatureBatch batch_;
  int bad_row_ = -2;
};

TEST_F(ListsTest, EachIdHasItsWeight) {
  ASSERT_TRUE(Apply({.dense = {}, .categorical = {"weighted", "counted", "letters"}},
                    {{.words = {"c", "?", "a"}, .floats = {0.5, 2, -1}, .ints = {1, 2, 3}},
                     {},
                     {.words = {"a"}, .floats = {0}, .ints = {1 << 24}}})
                  .ok());
  const IdList& list = batch_.id_lists[0];
  EXPECT_THAT(list.ids, ElementsAre(2, -1, 0, 0));
  EXPECT_THAT(list.offsets, ElementsAre(0, 3, 3, 4));
  EXPECT_THAT(list.weights, ElementsAre(0.5, 2, -1, 0));
  EXPECT_THAT(batch_.id_lists[1].weights, ElementsAre(1, 2, 3, 1 << 24));
  EXPECT_THAT(batch_.id_lists[2].weights, ElementsAre());
}

TEST_F(ListsTest, OneWeightForOneValue) {
  ASSERT_TRUE(Apply({.dense = {}, .categorical = {"weighted_letter"}},
                    {{.word = "b", .number = 3}, {.word = "", .number = 4}})
                  .ok());
  EXPECT_TRUE(batch_.id_lists[0].one_per_row());
  EXPECT_THAT(batch_.id_lists[0].ids, ElementsAre(1, -1));
  EXPECT_THAT(batch_.id_lists[0].weights, ElementsAre(3, 4));
}

TEST_F(ListsTest, KeysAreIntsAndFingerprints) {
  Add("int_keys", ColumnKind::kKeys, "ints");
  Add("word_keys", ColumnKind::kKeys, "words");
  Add("word_key", ColumnKind::kKeys, "word");
  Add("weighted_keys", ColumnKind::kWeighted, "word_keys").weights = "floats";
  ASSERT_TRUE(
      Apply({.dense = {}, .categorical = {"int_keys", "word_keys", "word_key", "weighted_keys"}},
            {{.words = {"c", ""}, .floats = {1, 2}, .ints = {-1, INT64_MAX}, .word = "c"},
             {.word = ""}})
          .ok());
  const auto key = [](std::string_view word) {
    return static_cast<int64_t>(Fingerprint64(word) % static_cast<uint64_t>(INT64_MAX));
  };
  EXPECT_THAT(batch_.id_lists[0].keys, ElementsAre(-1, INT64_MAX));
  EXPECT_THAT(batch_.id_lists[0].ids, ElementsAre(0, 0));
  EXPECT_THAT(batch_.id_lists[0].offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(batch_.id_lists[1].keys, ElementsAre(key("c"), key("")));
  // '' in a field with one value per row counts as missing.
  EXPECT_THAT(batch_.id_lists[2].ids, ElementsAre(0, -1));
  EXPECT_EQ(batch_.id_lists[2].keys[0], key("c"));
  EXPECT_THAT(batch_.id_lists[3].keys, ElementsAre(key("c"), key("")));
  EXPECT_THAT(batch_.id_lists[3].weights, ElementsAre(1, 2));
}

// Both indicators use the same scratch memory.
TEST_F(ListsTest, IndicatorsSumWeights) {
  ASSERT_TRUE(Apply({.dense = {"weighted_hot", "hot"}, .categorical = {}},
                    {{.words = {"c", "a", "c", "?"}, .floats = {0.5, -2, 1, 9}}, {}})
                  .ok());
  EXPECT_THAT(batch_.dense[0].values, ElementsAre(-2, 0, 1.5, 0, 0, 0));
  EXPECT_THAT(batch_.dense[1].values, ElementsAre(1, 0, 2, 0, 0, 0));
}

TEST_F(ListsTest, WeightsThatDoNotFitAreReported) {
  const FeatureRequest request = {.dense = {}, .categorical = {"weighted"}};
  const Row good = {.words = {"a", "b"}, .floats = {1, 2}};
  absl::Status status = Apply(request, {good, {.words = {"a", "b"}, .floats = {1}}, good});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("column 'weighted': 'floats' has 1 weights for 2 values"));
  EXPECT_EQ(bad_row_, 1);
  status = Apply(request, {good, good, {.words = {"a", "b"}, .floats = {1, NAN}}});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("column 'weighted': the weight nan is not finite"));
  EXPECT_EQ(bad_row_, 2);
}

TEST_F(ListsTest, NumbersOfAFixedLength) {
  ColumnSpec& column = Add("column", ColumnKind::kNumeric, "floats");
  column.shape = 2;
  column.mean = 1;
  column.stddev = 2;
  EXPECT_THAT(Floats({{1, 3}, {5, -1}}), ElementsAre(0, 1, 2, -1));
  EXPECT_EQ(batch_.dense[0].width, 2);
  absl::Status status =
      Apply({.dense = {"column"}, .categorical = {}}, {{.floats = {1, 2}}, {.floats = {1, 2, 3}}});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("column 'column': it has 3 values, not the 2 that 'shape' says"));
  EXPECT_EQ(bad_row_, 1);
  status =
      Apply({.dense = {"column"}, .categorical = {}}, {{.floats = {1, 2}}, {.floats = {1, NAN}}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("the value nan is not finite"));
  EXPECT_EQ(bad_row_, 1);
}

// There are more values than fit a block, so that a block begins in the middle of a row.
TEST_F(ListsTest, BucketsOfAFixedLength) {
  ColumnSpec& column = Add("column", ColumnKind::kBucketized, "floats");
  column.shape = 3;
  column.boundaries = {0, 10};
  ColumnSpec& cross = Add("cross", ColumnKind::kCross, "");
  cross.keys = {"column", "word"};
  cross.buckets = 1 << 30;
  const std::vector<Row> rows(200, {.floats = {-1, 5, 20}});
  ASSERT_TRUE(Apply({.dense = {}, .categorical = {"column", "cross"}}, rows).ok());
  for (int row = 0; row < 200; ++row) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(batch_.id_lists[0].ids[3 * row + i], 3 * i + i) << row;
  }
  EXPECT_EQ(batch_.id_lists[1].ids.size(), 600);
  for (const std::string name : {"column", "cross"}) {
    const absl::Status status =
        Apply({.dense = {}, .categorical = {name}}, {{.floats = {1, 2, 3}}, {.floats = {1}}});
    EXPECT_THAT(std::string(status.message()), HasSubstr("it has 1 values, not the 3"));
    EXPECT_EQ(bad_row_, 1);
  }
}

TEST_F(ListsTest, PoolsSequences) {
  ColumnSpec& column = Add("column", ColumnKind::kSequenceNumeric, "floats");
  column.mean = 1;
  const auto pooled = [&](Pooling pooling) {
    spec_.columns.back().pooling = pooling;
    return Floats({{1, 3, 2}, {}, {-4}});
  };
  EXPECT_THAT(pooled(Pooling::kSum), ElementsAre(3, 0, -5));
  EXPECT_THAT(pooled(Pooling::kMean), ElementsAre(1, 0, -5));
  EXPECT_THAT(pooled(Pooling::kSqrtN), ElementsAre(3 / std::sqrt(3.0F), 0, -5));
  EXPECT_THAT(pooled(Pooling::kMax), ElementsAre(2, 0, -5));
  EXPECT_THAT(pooled(Pooling::kLast), ElementsAre(1, 0, -5));
}

TEST_F(ListsTest, PoolsStepsOfSeveralNumbers) {
  Add("column", ColumnKind::kSequenceNumeric, "floats").pooling = Pooling::kMax;
  spec_.columns.back().shape = 2;
  EXPECT_THAT(Floats({{1, 9, 3, 4}, {}}), ElementsAre(3, 9, 0, 0));
  const absl::Status status =
      Apply({.dense = {"column"}, .categorical = {}}, {{.floats = {1, 2}}, {.floats = {1, 2, 3}}});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it has 3 values, which are not whole steps of 2"));
  EXPECT_EQ(bad_row_, 1);
}

}  // namespace
}  // namespace muster::features
