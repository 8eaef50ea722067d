#include "muster/model/layer_graph.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/formats/graph_def_test_util.h"
#include "muster/io/memory_file_system.h"
#include "muster/model/spec/settings.h"

namespace muster::model {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::string_view kWideAndDeep = R"(
inputs: {id: int, age: float, city: string, unused: string, y: int}
label: y
columns:
  age: {numeric: age, mean: 40}
  age_bucket: {bucketized: age, boundaries: [20, 60]}
  city: {hash: city, buckets: 10}
  where_and_when: {cross: [city, age_bucket], buckets: 50}
  city_embedding: {embedding: city, dimension: 4, combiner: sum}
  left_out: {hash: unused, buckets: 3}
model:
  type: wide_deep
  linear: {columns: [where_and_when], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn: {columns: [age, city_embedding], hidden_units: [8, 4], dropout: 0.5, batch_norm: true}
train: {batch_size: 16, epochs: 3, shuffle: false}
)";

ModelSpec Parse(std::string_view yaml) {
  const auto files = io::NewMemoryFileSystem();
  return ParseModelSpec(*files, yaml, "spec.yaml").value();
}

struct ShownNode {
  std::string op;
  std::vector<std::string> inputs;
  std::string encoded;
};

std::map<std::string, ShownNode> GetNodes(const std::string& graph) {
  std::map<std::string, ShownNode> nodes;
  for (const std::string& node : formats::GetBytes(graph, 1)) {
    const std::string name = formats::FirstBytes(node, 1);
    EXPECT_FALSE(nodes.contains(name)) << name;
    nodes[name] = {formats::FirstBytes(node, 2), formats::GetBytes(node, 3), node};
  }
  return nodes;
}

TEST(LayerGraphTest, LeadsFromFieldsToTheHead) {
  const auto model = BuildModel(Parse(kWideAndDeep));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto nodes = GetNodes(*LayerGraph(*model));
  const std::string input_layer = "dnn/input_from_feature_columns/input_layer";
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes) names.push_back(name);
  EXPECT_THAT(
      names, ElementsAre(
                 "Add", "columns/age", "columns/age_bucket", "columns/city",
                 "columns/where_and_when", "dnn/hiddenlayer_0/Dense", "dnn/hiddenlayer_0/Dropout",
                 "dnn/hiddenlayer_0/batchnorm_0/BatchNorm", "dnn/hiddenlayer_0/batchnorm_0/beta",
                 "dnn/hiddenlayer_0/batchnorm_0/gamma", "dnn/hiddenlayer_0/batchnorm_0/moving_mean",
                 "dnn/hiddenlayer_0/batchnorm_0/moving_variance", "dnn/hiddenlayer_0/bias",
                 "dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_1/Dense", "dnn/hiddenlayer_1/Dropout",
                 "dnn/hiddenlayer_1/batchnorm_1/BatchNorm", "dnn/hiddenlayer_1/batchnorm_1/beta",
                 "dnn/hiddenlayer_1/batchnorm_1/gamma", "dnn/hiddenlayer_1/batchnorm_1/moving_mean",
                 "dnn/hiddenlayer_1/batchnorm_1/moving_variance", "dnn/hiddenlayer_1/bias",
                 "dnn/hiddenlayer_1/kernel", input_layer + "/Concat", input_layer + "/age",
                 input_layer + "/city_embedding/EmbeddingBag",
                 input_layer + "/city_embedding/embedding_weights", "dnn/logits/Dense",
                 "dnn/logits/bias", "dnn/logits/kernel", "head/loss", "head/predictions",
                 "inputs/age", "inputs/city", "inputs/y", "linear/linear_model/Linear",
                 "linear/linear_model/bias_weights", "linear/linear_model/where_and_when/weights"));
  // Every input of a node must be a node.
  for (const auto& [name, node] : nodes) {
    for (const std::string& input : node.inputs) EXPECT_TRUE(nodes.contains(input)) << input;
  }
  EXPECT_THAT(nodes.at("columns/age_bucket").inputs, ElementsAre("inputs/age"));
  EXPECT_EQ(nodes.at("columns/age_bucket").op, "bucketized");
  // The key `city` of the cross is the field; the embedding's input is the column.
  EXPECT_THAT(nodes.at("columns/where_and_when").inputs,
              ElementsAre("inputs/city", "columns/age_bucket"));
  EXPECT_THAT(nodes.at(input_layer + "/city_embedding/EmbeddingBag").inputs,
              ElementsAre("columns/city", input_layer + "/city_embedding/embedding_weights"));
  EXPECT_THAT(nodes.at(input_layer + "/Concat").inputs,
              ElementsAre(input_layer + "/age", input_layer + "/city_embedding/EmbeddingBag"));
  EXPECT_THAT(nodes.at("dnn/hiddenlayer_1/Dense").inputs,
              ElementsAre("dnn/hiddenlayer_0/batchnorm_0/BatchNorm", "dnn/hiddenlayer_1/kernel",
                          "dnn/hiddenlayer_1/bias"));
  EXPECT_THAT(nodes.at("head/loss").inputs, ElementsAre("Add", "inputs/y"));
}

TEST(LayerGraphTest, NodesHaveShapesAndAttributes) {
  const auto model = BuildModel(Parse(kWideAndDeep));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto nodes = GetNodes(*LayerGraph(*model));
  const auto attribute = [&](const std::string& node, const std::string& name) {
    return formats::MapEntry(nodes.at(node).encoded, 5, name);
  };
  // AttrValue.s = 2; AttrValue.list = 1, ListValue.shape = 7, dim = 2, size = 1.
  EXPECT_EQ(formats::FirstBytes(attribute("dnn/hiddenlayer_0/Dense", "activation"), 2), "relu");
  EXPECT_EQ(formats::FirstBytes(attribute("dnn/hiddenlayer_0/Dropout", "rate"), 2), "0.5");
  EXPECT_EQ(formats::FirstBytes(attribute("columns/age", "mean"), 2), "40");
  const auto shape = [&](const std::string& node) {
    std::vector<int64_t> sizes;
    const std::string list = formats::FirstBytes(attribute(node, "_output_shapes"), 1);
    for (const std::string& dim : formats::GetBytes(formats::FirstBytes(list, 7), 2)) {
      sizes.push_back(formats::GetInt(dim, 1));
    }
    return sizes;
  };
  EXPECT_THAT(shape("dnn/hiddenlayer_0/Dense"), ElementsAre(-1, 8));
  EXPECT_THAT(shape("dnn/hiddenlayer_0/kernel"), ElementsAre(5, 8));
  EXPECT_THAT(shape("head/predictions"), ElementsAre(-1, 1));
}

TEST(LayerGraphTest, ABaselineReadsItsLabelAndWeight) {
  const auto model = BuildModel(Parse(R"(
inputs: {y: int, w: float}
label: y
weight: w
model: {type: baseline}
head: {multi_class: {classes: 3}}
)"));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto nodes = GetNodes(*LayerGraph(*model));
  EXPECT_THAT(nodes.at("baseline/Linear").inputs, ElementsAre("baseline/bias"));
  EXPECT_THAT(nodes.at("head/loss").inputs, ElementsAre("baseline/Linear", "inputs/y", "inputs/w"));
}

TEST(LayerGraphTest, ColumnsMayHaveTheNamesOfTheirFields) {
  const auto model = BuildModel(Parse(R"(
inputs: {y: int, x: {type: float, list: true}, w: {type: float, list: true}, c: {type: string, list: true}}
label: y
columns:
  x: {sequence_numeric: x, pooling: mean}
  c: {hash: c, buckets: 10}
  heavy: {weighted: c, weights: w}
  both: {indicator: heavy}
model: {type: dnn, dnn: {columns: [x, both], hidden_units: [2]}}
)"));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto nodes = GetNodes(*LayerGraph(*model));
  EXPECT_THAT(nodes.at("columns/x").inputs, ElementsAre("inputs/x"));
  EXPECT_THAT(nodes.at("columns/heavy").inputs, ElementsAre("columns/c", "inputs/w"));
  EXPECT_THAT(nodes.at("columns/both").inputs, ElementsAre("columns/heavy"));
}

TEST(SettingsTest, AreThePathsAndValuesOfTheSpec) {
  std::map<std::string, formats::HparamValue> settings;
  for (const auto& [name, value] : Settings(Parse(kWideAndDeep))) settings[name] = value;
  EXPECT_EQ(settings.at("type"), formats::HparamValue("wide_deep"));
  EXPECT_EQ(settings.at("head"), formats::HparamValue("binary"));
  EXPECT_EQ(settings.at("dnn/hidden_units"), formats::HparamValue("[8, 4]"));
  EXPECT_EQ(settings.at("dnn/dropout"), formats::HparamValue(0.5));
  EXPECT_EQ(settings.at("dnn/batch_norm"), formats::HparamValue(true));
  EXPECT_EQ(settings.at("dnn/optimizer"), formats::HparamValue("adagrad"));
  EXPECT_EQ(settings.at("linear/optimizer"), formats::HparamValue("ftrl"));
  EXPECT_EQ(settings.at("linear/optimizer/learning_rate"), formats::HparamValue(0.1));
  EXPECT_EQ(settings.at("train/batch_size"), formats::HparamValue(16.0));
  EXPECT_EQ(settings.at("train/shuffle"), formats::HparamValue(false));
  for (const auto& [name, value] : settings) {
    EXPECT_EQ(name.find("columns"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace muster::model
