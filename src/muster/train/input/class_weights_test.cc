#include "muster/train/input/class_weights.h"

#include <cstring>

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using engine::tensorflow::KerasExport;
using engine::tensorflow::KerasPort;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ClassWeightsTest : public TrainingTest {
 protected:
  model::ModelSpec Parse(const std::string& change_from = "", const std::string& change_to = "") {
    std::string yaml(kTestSpec);
    if (!change_from.empty()) yaml.replace(yaml.find(change_from), change_from.size(), change_to);
    const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status();
    return *spec;
  }
  static std::string Refusal(const std::string& text, const model::ModelSpec& model) {
    return std::string(ToStd(ParseClassWeights(text, model).status().message()));
  }
};

// An exported model of one input and one label of that shape.
model::ModelSpec Exported(std::vector<int64_t> label, bool weighs, bool own_weights = false) {
  auto exported = std::make_shared<KerasExport>();
  exported->inputs.resize(1);
  exported->labels.resize(1);
  exported->labels[0].shape = std::move(label);
  if (own_weights) exported->sample_weight.emplace();
  auto& step = exported->signatures["step"];
  if (weighs) step.inputs.push_back({KerasPort::Role::kSampleWeight, 0, "sample_weight:0"});
  model::ModelSpec spec;
  spec.exported = std::move(exported);
  return spec;
}

features::RawColumn Column(const std::vector<float>& values, std::vector<int64_t> shape = {}) {
  features::RawColumn column{.shape = std::move(shape)};
  column.bytes.resize(values.size() * sizeof(float));
  std::memcpy(column.bytes.data(), values.data(), column.bytes.size());
  return column;
}

TEST_F(ClassWeightsTest, ClassesAreGivenByNumberOrByWord) {
  const model::ModelSpec numbers = Parse();
  EXPECT_THAT(*ParseClassWeights("0=0.5,1=4", numbers), ElementsAre(Pair(0, 0.5), Pair(1, 4)));
  EXPECT_THAT(Refusal("2=1", numbers), HasSubstr("there is no class 2: the model has 2"));
  EXPECT_THAT(Refusal("yes=1", numbers), HasSubstr("'yes' is not the number of a class"));
  EXPECT_THAT(Refusal("1", numbers), HasSubstr("'1' is not CLASS=WEIGHT"));
  EXPECT_THAT(Refusal("1=-1", numbers), HasSubstr("'1=-1' is not CLASS=WEIGHT"));
  EXPECT_THAT(Refusal("1=1,1=2", numbers), HasSubstr("class '1' has two weights"));
  model::ModelSpec words = Parse();
  words.features.label.words = {"no", "a=b"};
  EXPECT_THAT(*ParseClassWeights("a=b=4", words), ElementsAre(Pair(1, 4)));
  EXPECT_THAT(Refusal("1=4", words),
              HasSubstr("'1' is not one of the label's classes, such as 'no'"));
}

TEST_F(ClassWeightsTest, ALabelThatIsNotAClassIsRefused) {
  model::ModelSpec regression = Parse();
  regression.head = {.kind = "regression"};
  EXPECT_THAT(Refusal("0=1", regression), HasSubstr("head is regression, whose labels are not"));
  EXPECT_THAT(Refusal("0=1", Exported({}, false)), HasSubstr("takes no weights of rows"));
  EXPECT_THAT(Refusal("0=1", Exported({3, 4}, true)), HasSubstr("a single label that is a class"));
  EXPECT_TRUE(ParseClassWeights("7=1", Exported({}, true)).ok());
}

TEST_F(ClassWeightsTest, WeightsOfRowsAreMultiplied) {
  features::FeatureBatch batch;
  batch.rows = 3;
  batch.labels = {1, 0, 1};
  ApplyClassWeights(Parse(), {{1, 4}}, &batch);
  EXPECT_THAT(batch.weights, ElementsAre(4, 1, 4));
  ApplyClassWeights(Parse(), {{1, 4}}, &batch);
  EXPECT_THAT(batch.weights, ElementsAre(16, 1, 16));
}

TEST_F(ClassWeightsTest, AnExportedModelsClassIsTheLabelOrTheLargest) {
  features::FeatureBatch batch;
  batch.rows = 2;
  batch.raw = {Column({0, 0}), Column({2, 0})};
  ApplyClassWeights(Exported({}, true), {{2, 4}}, &batch);
  EXPECT_THAT(batch.weights, ElementsAre(4, 1));
  batch.raw[1] = Column({0, 0, 1, 1, 0, 0}, {3});
  ApplyClassWeights(Exported({3}, true), {{2, 4}}, &batch);
  EXPECT_THAT(batch.weights, ElementsAre(4, 1));
}

TEST_F(ClassWeightsTest, AnExportedModelsOwnWeightsAreMultiplied) {
  features::FeatureBatch batch;
  batch.rows = 2;
  batch.raw = {Column({0, 0}), Column({1, 0}), Column({1, 2, 3, 4}, {2})};
  ApplyClassWeights(Exported({}, true, /*own_weights=*/true), {{1, 2}}, &batch);
  EXPECT_TRUE(batch.weights.empty());
  EXPECT_EQ(batch.raw[2].bytes, Column({2, 4, 3, 4}).bytes);
}

}  // namespace
}  // namespace muster::train
