#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "muster/features/column.h"

namespace muster::features {
namespace {

using formats::ValueType;
using testing::HasSubstr;

formats::Field MakeField(std::string name, ValueType type, bool list = false) {
  formats::Field field;
  field.name = std::move(name);
  field.type = type;
  field.list = list;
  return field;
}

ColumnSpec MakeColumn(std::string name, ColumnKind kind, std::string input) {
  ColumnSpec column;
  column.name = std::move(name);
  column.kind = kind;
  column.input = std::move(input);
  return column;
}

// Returns a spec with one valid column of every kind.
FeatureSpec ValidSpec() {
  FeatureSpec spec;
  spec.schema.fields = {
      MakeField("age", ValueType::kFloat),  MakeField("city", ValueType::kString),
      MakeField("visits", ValueType::kInt), MakeField("tags", ValueType::kString, true),
      MakeField("label", ValueType::kInt),  MakeField("scores", ValueType::kFloat, true)};
  ColumnSpec numeric = MakeColumn("number", ColumnKind::kNumeric, "age");
  ColumnSpec bucketized = MakeColumn("age_bucket", ColumnKind::kBucketized, "age");
  bucketized.boundaries = {1, 2};
  ColumnSpec vocabulary = MakeColumn("words", ColumnKind::kVocabulary, "city");
  vocabulary.words = {"Rome", "Oslo"};
  ColumnSpec identity = MakeColumn("identity", ColumnKind::kIdentity, "visits");
  identity.buckets = 5;
  ColumnSpec hash = MakeColumn("hash", ColumnKind::kHash, "tags");
  hash.buckets = 10;
  ColumnSpec cross = MakeColumn("cross", ColumnKind::kCross, "");
  cross.buckets = 10;
  cross.keys = {"city", "age_bucket", "visits", "words"};
  ColumnSpec indicator = MakeColumn("indicator", ColumnKind::kIndicator, "words");
  ColumnSpec embedding = MakeColumn("embedding", ColumnKind::kEmbedding, "hash");
  embedding.dimension = 4;
  ColumnSpec weighted = MakeColumn("weighted", ColumnKind::kWeighted, "hash");
  weighted.weights = "scores";
  ColumnSpec shared = MakeColumn("shared", ColumnKind::kEmbedding, "weighted");
  shared.dimension = 4;
  shared.shared = "table";
  ColumnSpec steps = MakeColumn("steps", ColumnKind::kEmbedding, "hash");
  steps.dimension = 4;
  steps.shared = "table";
  steps.pooling = Pooling::kMax;
  ColumnSpec sequence = MakeColumn("sequence", ColumnKind::kSequenceNumeric, "scores");
  sequence.pooling = Pooling::kLast;
  sequence.shape = 2;
  spec.columns = {numeric,   bucketized, vocabulary, identity, hash,  cross,
                  indicator, embedding,  weighted,   shared,   steps, sequence};
  spec.label.input = "label";
  spec.key = "city";
  return spec;
}

ColumnSpec& Named(FeatureSpec& spec, std::string_view name) {
  for (ColumnSpec& column : spec.columns) {
    if (column.name == name) return column;
  }
  ADD_FAILURE() << "no column " << name;
  return spec.columns[0];
}

TEST(Validate, ABaselineNeedsNoField) { EXPECT_TRUE(Validate(FeatureSpec()).ok()); }

TEST(Column, CountsIds) {
  FeatureSpec spec = ValidSpec();
  Named(spec, "words").oov_buckets = 3;
  EXPECT_EQ(spec.NumIds(Named(spec, "age_bucket")), 3);
  EXPECT_EQ(spec.NumIds(Named(spec, "words")), 5);
  EXPECT_EQ(spec.NumIds(Named(spec, "identity")), 5);
  EXPECT_EQ(spec.NumIds(Named(spec, "cross")), 10);
  EXPECT_EQ(spec.NumIds(Named(spec, "weighted")), 10);
  for (const ColumnSpec& column : spec.columns) {
    EXPECT_TRUE(spec.NumIds(column) > 0 || column.is_dense()) << column.name;
  }
}

TEST(Column, KnowsWidthsAndLists) {
  FeatureSpec spec = ValidSpec();
  EXPECT_EQ(spec.Width(Named(spec, "number")), 1);
  EXPECT_EQ(spec.Width(Named(spec, "indicator")), 2);
  EXPECT_EQ(spec.Width(Named(spec, "embedding")), 4);
  EXPECT_EQ(spec.Width(Named(spec, "sequence")), 2);
  EXPECT_TRUE(spec.HasLists(Named(spec, "weighted")));
  EXPECT_FALSE(spec.HasLists(Named(spec, "cross")));
  Named(spec, "cross").keys.push_back("tags");
  EXPECT_TRUE(spec.HasLists(Named(spec, "cross")));
}

TEST(Column, CollectsWhatItUses) {
  FeatureSpec spec = ValidSpec();
  std::set<std::string> columns, fields;
  spec.CollectUses("shared", &columns, &fields);
  EXPECT_THAT(columns, testing::ElementsAre("hash", "shared", "weighted"));
  EXPECT_THAT(fields, testing::ElementsAre("scores", "tags"));
  columns.clear(), fields.clear();
  spec.CollectUses("cross", &columns, &fields);
  EXPECT_THAT(columns, testing::ElementsAre("age_bucket", "cross", "words"));
  EXPECT_THAT(fields, testing::ElementsAre("age", "city", "visits"));
  // The columns of an invalid spec may form a circle.
  Named(spec, "weighted").input = "weighted";
  spec.CollectUses("weighted", &columns, &fields);
  EXPECT_EQ(spec.NumIds(Named(spec, "weighted")), 0);
}

TEST(Validate, AcceptsEveryKind) {
  const absl::Status status = Validate(ValidSpec());
  EXPECT_TRUE(status.ok()) << status;
}

struct Mistake {
  const char* name;
  std::function<void(FeatureSpec&)> make;
  const char* message;
};

class ValidateMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ValidateMistakes, AreReported) {
  FeatureSpec spec = ValidSpec();
  GetParam().make(spec);
  const absl::Status status = Validate(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

const Mistake kMistakes[] = {
    {"UnknownInput", [](FeatureSpec& s) { Named(s, "number").input = "agee"; },
     "column 'number': unknown input 'agee' (did you mean 'age'?)"},
    {"NumericString", [](FeatureSpec& s) { Named(s, "number").input = "city"; },
     "'city' is a string"},
    {"NumericMean", [](FeatureSpec& s) { Named(s, "number").mean = NAN; }, "mean is nan"},
    {"NumericStddev", [](FeatureSpec& s) { Named(s, "number").stddev = 0; }, "stddev is 0"},
    {"NumericStddevTiny", [](FeatureSpec& s) { Named(s, "number").stddev = 1e-60; }, "stddev is"},
    {"ShapeOfAScalar", [](FeatureSpec& s) { Named(s, "number").shape = 2; },
     "column 'number': shape is 2 and 'age' has one value per row"},
    {"BucketizedShape",
     [](FeatureSpec& s) {
       s.schema.fields[0].list = true;
       Named(s, "age_bucket").shape = 0;
     },
     "shape is 0"},
    {"ShapesThatDiffer",
     [](FeatureSpec& s) {
       s.schema.fields[0].list = true;
       Named(s, "number").shape = 2;
     },
     "column 'age_bucket': shape is 1, and 'number', which reads 'age' too, has 2"},
    {"WeightedNotCategorical", [](FeatureSpec& s) { Named(s, "weighted").input = "number"; },
     "column 'weighted': its input 'number' is not categorical"},
    {"WeightedTwice", [](FeatureSpec& s) { Named(s, "weighted").input = "weighted"; },
     "'weighted' is already weighted"},
    {"UnknownWeights", [](FeatureSpec& s) { Named(s, "weighted").weights = "score"; },
     "unknown input 'score' (did you mean 'scores'?)"},
    {"WeightsThatAreStrings", [](FeatureSpec& s) { Named(s, "weighted").weights = "tags"; },
     "weights are ints or floats; 'tags' is a string"},
    {"OneWeightForAList", [](FeatureSpec& s) { Named(s, "weighted").weights = "age"; },
     "'hash' has a list per row, its weights 'age' one value"},
    {"WeightsForOneValue", [](FeatureSpec& s) { Named(s, "weighted").input = "words"; },
     "'words' has one value per row, its weights 'scores' a list"},
    {"CrossOfWeighted", [](FeatureSpec& s) { Named(s, "cross").keys[0] = "weighted"; },
     "key 'weighted': is weighted, and a cross has no weights; give its column 'hash'"},
    {"NegativeNorm", [](FeatureSpec& s) { Named(s, "embedding").max_norm = -1; }, "max_norm is -1"},
    {"PoolingOfOneValue",
     [](FeatureSpec& s) {
       Named(s, "embedding").input = "words";
       Named(s, "embedding").pooling = Pooling::kSum;
     },
     "a pooling is for sequences; 'words' has one id per row"},
    {"PoolingOfWeights", [](FeatureSpec& s) { Named(s, "shared").pooling = Pooling::kSum; },
     "'weighted' is weighted"},
    {"PoolingAndCombiner", [](FeatureSpec& s) { Named(s, "steps").combiner = Combiner::kSum; },
     "both a pooling and a combiner"},
    {"SharedName", [](FeatureSpec& s) { Named(s, "shared").shared = "a/b"; },
     "column 'shared': shared 'a/b' cannot be the name of a table"},
    {"SharedDimension", [](FeatureSpec& s) { Named(s, "steps").dimension = 5; },
     "column 'steps': shared 'table': its table is 10 x 5, max_norm 0; that of 'shared' is 10 x 4"},
    {"SharedIds", [](FeatureSpec& s) { Named(s, "shared").input = "words"; },
     "its table is 10 x 4, max_norm 0; that of 'shared' is 2 x 4"},
    {"SequenceOfOneValue", [](FeatureSpec& s) { Named(s, "sequence").input = "age"; },
     "a sequence needs a list; 'age' is not one"},
    {"SequenceWithoutPooling",
     [](FeatureSpec& s) { Named(s, "sequence").pooling = Pooling::kNone; }, "needs a pooling"},
    {"SequenceScale", [](FeatureSpec& s) { Named(s, "sequence").stddev = 0; }, "stddev is 0"},
    {"NoBoundaries", [](FeatureSpec& s) { Named(s, "age_bucket").boundaries.clear(); }, "empty"},
    {"FallingBoundaries",
     [](FeatureSpec& s) {
       Named(s, "age_bucket").boundaries = {1, 1};
     },
     "column 'age_bucket': boundaries must ascend"},
    {"InfiniteBoundary",
     [](FeatureSpec& s) {
       Named(s, "age_bucket").boundaries = {1, INFINITY};
     },
     "boundary 1 is not finite"},
    {"NoWords", [](FeatureSpec& s) { Named(s, "words").words.clear(); }, "no words"},
    {"TwiceAWord",
     [](FeatureSpec& s) {
       Named(s, "words").words = {"a", "b", "a"};
     },
     "the word 'a' is there twice"},
    {"IntWords", [](FeatureSpec& s) { Named(s, "words").input = "visits"; },
     "the word 'Rome' of an int vocabulary"},
    {"TwiceAnInt",
     [](FeatureSpec& s) {
       Named(s, "words").input = "visits";
       Named(s, "words").words = {"1", "01"};
     },
     "the word '01' is there twice"},
    {"FloatVocabulary", [](FeatureSpec& s) { Named(s, "words").input = "age"; }, "is a float"},
    {"OovAndDefault",
     [](FeatureSpec& s) {
       Named(s, "words").oov_buckets = 2;
       Named(s, "words").default_id = 1;
     },
     "both oov_buckets and a default id"},
    {"DefaultOutside", [](FeatureSpec& s) { Named(s, "words").default_id = 2; },
     "the default id 2 is not in [0, 2)"},
    {"TooManyIds", [](FeatureSpec& s) { Named(s, "words").oov_buckets = 2147483647; },
     "has 2147483649 ids"},
    {"IdentityString", [](FeatureSpec& s) { Named(s, "identity").input = "city"; },
     "needs an int input; 'city' is a string"},
    {"NoBuckets", [](FeatureSpec& s) { Named(s, "hash").buckets = 0; }, "buckets is 0"},
    {"TooManyBuckets", [](FeatureSpec& s) { Named(s, "hash").buckets = 1LL << 31; }, "buckets is"},
    {"HashedFloat", [](FeatureSpec& s) { Named(s, "hash").input = "age"; }, "is a float"},
    {"OneKey", [](FeatureSpec& s) { Named(s, "cross").keys = {"city"}; }, "at least two keys"},
    {"FloatKey",
     [](FeatureSpec& s) {
       Named(s, "cross").keys = {"city", "age"};
     },
     "column 'cross': key 'age': is a float; bucketize it"},
    {"UnknownKey",
     [](FeatureSpec& s) {
       Named(s, "cross").keys = {"city", "age_buckets"};
     },
     "key 'age_buckets': is neither a field nor a column (did you mean 'age_bucket'?)"},
    {"HashKey",
     [](FeatureSpec& s) {
       Named(s, "cross").keys = {"city", "hash"};
     },
     "key 'hash': is a hash column; give its field 'tags'"},
    {"CrossKey",
     [](FeatureSpec& s) {
       Named(s, "cross").keys = {"city", "cross"};
     },
     "is a cross"},
    {"DenseKey",
     [](FeatureSpec& s) {
       Named(s, "cross").keys = {"city", "number"};
     },
     "is not categorical"},
    {"TwoMeanings", [](FeatureSpec& s) { Named(s, "age_bucket").name = "age"; },
     "key 'age_bucket': is neither"},
    {"Ambiguous",
     [](FeatureSpec& s) {
       Named(s, "age_bucket").name = "age";
       Named(s, "cross").keys = {"city", "age"};
     },
     "both a field and a bucketized column"},
    {"IndicatorOfNumber", [](FeatureSpec& s) { Named(s, "indicator").input = "number"; },
     "its input 'number' is not categorical"},
    {"IndicatorOfField", [](FeatureSpec& s) { Named(s, "indicator").input = "word"; },
     "(did you mean 'words'?)"},
    {"WideIndicator",
     [](FeatureSpec& s) {
       Named(s, "hash").buckets = 5'000'000;
       Named(s, "indicator").input = "hash";
     },
     "would be 5000000 floats per row"},
    {"NoDimension", [](FeatureSpec& s) { Named(s, "embedding").dimension = 0; }, "dimension is 0"},
    {"SameName", [](FeatureSpec& s) { Named(s, "hash").name = "words"; },
     "column 'words': the name is there twice"},
    {"NoName", [](FeatureSpec& s) { Named(s, "hash").name = ""; }, "a column without a name"},
    {"UnknownLabel", [](FeatureSpec& s) { s.label.input = "labl"; },
     "label 'labl': unknown input (did you mean 'label'?)"},
    {"StringLabel", [](FeatureSpec& s) { s.label.input = "city"; }, "list the words"},
    {"ListLabel", [](FeatureSpec& s) { s.label.input = "tags"; }, "not a list"},
    {"LabelWords",
     [](FeatureSpec& s) {
       s.label.words = {"no", "yes"};
     },
     "the word 'no'"},
    {"UnknownKeyField", [](FeatureSpec& s) { s.key = "cit"; }, "key 'cit': unknown input"},
    {"NoFields", [](FeatureSpec& s) { s.schema.fields.clear(); }, "no fields"},
    {"SameField", [](FeatureSpec& s) { s.schema.fields[1].name = "age"; },
     "field 'age' is there twice"},
    {"WrongDefault",
     [](FeatureSpec& s) {
       s.schema.fields[2].has_default = true;
       s.schema.fields[2].default_value = std::string("none");
     },
     "field 'visits': its default is not an int"},
    {"ListDefault",
     [](FeatureSpec& s) {
       s.schema.fields[3].has_default = true;
       s.schema.fields[3].default_value = std::string("none");
     },
     "a list has no default"},
    {"TruncatedString", [](FeatureSpec& s) { s.schema.fields[1].truncate = true; },
     "field 'city': truncate is for ints only"},
};

INSTANTIATE_TEST_SUITE_P(Validate, ValidateMistakes, testing::ValuesIn(kMistakes),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace muster::features
