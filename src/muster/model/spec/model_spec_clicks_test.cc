// Model files of click models: factorization machines, cross networks, two towers.
#include <map>

#include "muster/model/model.h"
#include "muster/model/spec/model_spec_test_util.h"

namespace muster::model {
namespace {

using testing::HasSubstr;
using ModelSpecClicksTest = ModelSpecTest;

constexpr std::string_view kClicks = R"(
inputs: {price: float, user: string, item: string, y: int}
label: y
columns:
  price: {numeric: price}
  user: {hash: user, buckets: 50}
  item: {hash: item, buckets: 40}
  user_vector: {embedding: user, dimension: 4}
  item_vector: {embedding: item, dimension: 4}
model:
  type: deepfm
  linear: {columns: [user, item]}
  fm: {columns: [user_vector, item_vector, price], initial_stddev: 0.02, optimizer: {sgd: {}}}
  dnn: {columns: [price, user_vector, item_vector], hidden_units: [8]}
)";

constexpr std::string_view kCross = R"(
inputs: {price: float, user: string, y: int}
label: y
columns:
  price: {numeric: price}
  user: {hash: user, buckets: 50}
  user_vector: {embedding: user, dimension: 4}
model:
  type: dcn
  cross: {layers: 2, rank: 3, structure: parallel}
  dnn: {columns: [price, user_vector], hidden_units: [8], optimizer: {adam: {}}}
)";

TEST_F(ModelSpecClicksTest, ReadsModelsOfClicks) {
  const auto deepfm = Parse(kClicks);
  ASSERT_TRUE(deepfm.ok()) << deepfm.status();
  EXPECT_EQ(deepfm->type(), "deepfm");
  EXPECT_EQ(deepfm->fm->initial_stddev, 0.02);
  EXPECT_EQ(deepfm->fm->optimizer.kind, "sgd");
  // Not a wide & deep model's rates.
  EXPECT_EQ(deepfm->dnn->optimizer.learning_rate, 0.05);
  EXPECT_EQ(deepfm->linear->optimizer.learning_rate, 0.2);
  ExpectPrintsBack(*deepfm);
  const auto model = BuildModel(*deepfm);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::pair<std::string, int>> groups;
  for (const engine::VariableSpec& variable : model->engine->variables()) {
    if (variable.name.starts_with("linear/")) continue;
    groups.emplace_back(variable.name, variable.group);
    if (variable.kind == engine::VariableKind::kTable) {
      EXPECT_EQ(variable.initializer.value, 0.02) << variable.name;
    }
  }
  const std::string inputs = "dnn/input_from_feature_columns/input_layer/";
  using testing::Pair;
  EXPECT_THAT(groups,
              testing::ElementsAre(Pair(inputs + "user_vector/embedding_weights", 0),
                                   Pair(inputs + "item_vector/embedding_weights", 0),
                                   Pair("fm/price/kernel", 0), Pair("dnn/hiddenlayer_0/kernel", 1),
                                   Pair("dnn/hiddenlayer_0/bias", 1), Pair("dnn/logits/kernel", 1),
                                   Pair("dnn/logits/bias", 1)));

  const auto dcn = Parse(kCross);
  ASSERT_TRUE(dcn.ok()) << dcn.status();
  EXPECT_EQ(dcn->type(), "dcn");
  EXPECT_EQ(*dcn->cross, (CrossSpec{.layers = 2, .rank = 3, .parallel = true}));
  ExpectPrintsBack(*dcn);
  ModelSpec other = *dcn;
  other.cross->rank = 0;
  EXPECT_EQ(DescribeDifference(*dcn, other), "'rank: 3' became 'rank: 0'");
  const auto cross = BuildModel(*dcn);
  ASSERT_TRUE(cross.ok()) << cross.status();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const engine::VariableSpec& variable : cross->engine->variables()) {
    shapes[variable.name] = variable.shape;
  }
  EXPECT_EQ(shapes["dnn/crosslayer_1/v/kernel"], (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(shapes["dnn/crosslayer_1/u/kernel"], (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(shapes["dnn/crosslayer_1/u/bias"], (std::vector<int64_t>{5}));
  EXPECT_EQ(shapes["dnn/logits/kernel"], (std::vector<int64_t>{13, 1}));
}

constexpr std::string_view kTwoTower = R"(
inputs: {share: float, user: string, item: string, y: int}
label: y
columns:
  share: {numeric: share}
  user: {hash: user, buckets: 50}
  item: {hash: item, buckets: 40}
  user_vector: {embedding: user, dimension: 4}
  item_vector: {embedding: item, dimension: 4}
model:
  type: two_tower
  query: {columns: [user_vector], hidden_units: [8], l2: 0.1}
  item: {columns: [item_vector], hidden_units: [], optimizer: {sgd: {}}}
  dimension: 3
  normalize: false
head: {in_batch_softmax: {temperature: 0.5, sampling_probability: share}}
metrics: {top_k: [7]}
)";

TEST_F(ModelSpecClicksTest, ReadsTwoTowers) {
  const auto spec = Parse(kTwoTower);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->type(), "two_tower");
  EXPECT_EQ(spec->towers->dimension, 3);
  EXPECT_FALSE(spec->towers->normalize);
  EXPECT_EQ(spec->towers->query.l2, 0.1);
  EXPECT_EQ(spec->towers->item.optimizer.kind, "sgd");
  EXPECT_EQ(spec->head.temperature, 0.5);
  EXPECT_EQ(spec->head.logits_dimension(), 7);
  ExpectPrintsBack(*spec);
  // The head may be left out.
  const std::string head =
      "head: {in_batch_softmax: {temperature: 0.5, sampling_probability: share}}";
  const auto plain = Parse(WithText(kTwoTower, head, ""));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->head.logits_dimension(), 6);
  ExpectPrintsBack(*plain);
  const auto model = BuildModel(*spec);
  ASSERT_TRUE(model.ok()) << model.status();
  std::map<std::string, int> groups;
  for (const engine::VariableSpec& variable : model->engine->variables()) {
    groups[variable.name] = variable.group;
  }
  EXPECT_EQ(groups.at("query/hiddenlayer_0/kernel"), 0);
  EXPECT_EQ(groups.at("query/vector/bias"), 0);
  EXPECT_EQ(groups.at("item/vector/kernel"), 1);

  const auto error = [&](std::string_view old, std::string_view text) {
    return std::string(Parse(WithText(kTwoTower, old, text)).status().message());
  };
  EXPECT_THAT(error(head, "head: binary"), HasSubstr("learns from; head binary needs logits"));
  EXPECT_THAT(error("item: {columns: [item_vector]", "item: {columns: [user_vector]"),
              HasSubstr("'user_vector' is among the query's columns"));
  EXPECT_THAT(error("sampling_probability: share", "sampling_probability: user"),
              HasSubstr("'user' is not a numeric column"));
  EXPECT_THAT(error("  dimension: 3", "  dnn: {}"), HasSubstr("has no 'dnn' part"));
  EXPECT_THAT(error("top_k: [7]", "top_k: [0]"), HasSubstr("metrics.top_k: 0 is not 1 or more"));
  EXPECT_THAT(std::string(Parse(WithText(kCross, "label: y", "label: y\nhead: in_batch_softmax"))
                              .status()
                              .message()),
              HasSubstr("a dcn model has none"));
}

TEST_F(ModelSpecClicksTest, RefusesInvalidModelsOfClicks) {
  const auto error = [&](std::string_view spec, std::string_view old, std::string_view text) {
    return std::string(Parse(WithText(spec, old, text)).status().message());
  };
  EXPECT_THAT(
      error(kClicks, "item_vector: {embedding: item, dimension: 4}",
            "item_vector: {embedding: item, dimension: 8}"),
      HasSubstr("'item_vector' has dimension 8, but 'user_vector' has 4; all need the same"));
  EXPECT_THAT(error(kClicks, "fm: {columns: [user_vector, item_vector, price]",
                    "fm: {columns: [user, item_vector]"),
              HasSubstr("model.fm.columns: 'user' gives ids; wrap it in an 'embedding' column"));
  EXPECT_THAT(error(kClicks, "fm: {columns: [user_vector, item_vector, price]",
                    "fm: {columns: [user_vector]"),
              HasSubstr("give two columns or more"));
  EXPECT_THAT(error(kClicks, "label: y", "label: y\nhead: {multi_class: 3}"),
              HasSubstr("gives one logit per row, but the head 'multi_class' needs 3"));
  EXPECT_THAT(error(kClicks, "type: deepfm", "type: fm"),
              HasSubstr("a fm model has no 'dnn' part"));
  EXPECT_THAT(error(kClicks, "type: deepfm", "type: deepfn"), HasSubstr("did you mean 'deepfm'?"));
  EXPECT_THAT(error(kClicks, "type: deepfm", "type: deepfm\n  optimizer: sgd"),
              HasSubstr("'optimizer' belongs in the 'linear' or 'fm' or 'dnn' part"));
  EXPECT_THAT(error(kCross, "hidden_units: [8]", "hidden_units: []"),
              HasSubstr("give dnn.hidden_units"));
  EXPECT_THAT(error(kCross, "structure: parallel", "structure: paralel"),
              HasSubstr("did you mean 'parallel'?"));
  EXPECT_THAT(error(kCross, "rank: 3", "rang: 3"), HasSubstr("did you mean 'rank'?"));
}

}  // namespace
}  // namespace muster::model
