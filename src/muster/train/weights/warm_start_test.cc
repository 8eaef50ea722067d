#include "muster/train/weights/warm_start.h"

#include <cstring>

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

class WarmStartTest : public TrainingTest {
 protected:
  // Trains a model into "old", then starts a model of `yaml` from it, without training a step.
  absl::Status Begin(const WarmStart& warm_start, std::string_view yaml = kTestSpec) {
    const bool trained = files_->Stat("old/model.yaml").ok() || Train("old", Training()).ok();
    EXPECT_TRUE(trained);
    const auto estimator = NewEstimator(yaml, "new");
    estimator->set_warm_start(warm_start);
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return estimator->Train(Training(), progress, now_).status();
  }
  // The error of a start that fails; it must leave no folder.
  std::string Message(const WarmStart& warm_start, std::string_view yaml = kTestSpec) {
    std::string message(Begin(warm_start, yaml).message());
    EXPECT_TRUE(absl::IsNotFound(files_->Stat("new").status())) << message;
    return message;
  }

  std::vector<float> Floats(const std::string& folder, const std::string& name) {
    const std::string bytes = Weights(folder).at(name);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // The names of the tensors whose bytes are equal to those in "old".
  std::vector<std::string> Equal() {
    std::vector<std::string> equal;
    const auto old = Weights("old");
    for (const auto& [name, bytes] : Weights("new")) {
      if (old.at(name) == bytes) equal.push_back(name);
    }
    return equal;
  }

  const std::atomic<bool> now_{true};
};

constexpr const char* kColor = "linear/linear_model/color/weights";

TEST_F(WarmStartTest, TakesAllWeightsButNoSlotsAndNoStep) {
  ASSERT_TRUE(Begin({.from = "old"}).ok());
  const auto old = Weights("old");
  for (const auto& [name, bytes] : Weights("new")) {
    if (name == "global_step") {
      EXPECT_EQ(bytes, std::string(8, '\0'));
    } else if (name.starts_with("training/")) {
      EXPECT_NE(old.at(name), bytes) << name;
    } else {
      EXPECT_EQ(old.at(name), bytes) << name;
    }
  }
}

TEST_F(WarmStartTest, APatternMatchesAtTheBeginningOfAName) {
  ASSERT_TRUE(Begin({.from = "old", .patterns = {"linear/.*weights"}}).ok());
  EXPECT_THAT(Equal(), testing::ElementsAre("linear/linear_model/bias_weights", kColor));
}

TEST_F(WarmStartTest, StartsFromAPrefixOrASavedModel) {
  ASSERT_TRUE(Begin({.from = "old/model.ckpt-57"}).ok());
  const auto from_folder = Weights("new");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  ASSERT_TRUE(NewEstimator(kTestSpec, "old")->Export("saved").ok());
  for (const char* from : {"old/model.ckpt-57.index", "saved"}) {
    ASSERT_TRUE(files_->RemoveAll("new").ok());
    const absl::Status status = Begin({.from = from});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(Weights("new") == from_folder) << from;
  }
}

TEST_F(WarmStartTest, AModelWithACheckpointContinuesFromIt) {
  ASSERT_TRUE(Train("new", Training()).ok());
  const auto before = Weights("new");
  ASSERT_TRUE(Begin({.from = "nowhere"}).ok());
  EXPECT_TRUE(Weights("new") == before);
}

TEST_F(WarmStartTest, RowsFollowTheirWords) {
  std::string yaml(kTestSpec);
  yaml.replace(yaml.find("[red, green, blue]"), 18, "[blue, white, red], oov_buckets: 1");
  WarmStart settings{.from = "old", .patterns = {"linear"}};
  settings.vocabularies[kColor] = {.new_words = {"blue", "white", "red"},
                                   .old_words = {"red", "green", "blue"},
                                   .oov_buckets = 1};
  const absl::Status status = Begin(settings, yaml);
  ASSERT_TRUE(status.ok()) << status;
  const auto old = Floats("old", kColor);
  EXPECT_EQ(Floats("new", kColor), (std::vector<float>{old[2], 0, old[0], 0}));
}

TEST_F(WarmStartTest, OldSizeLimitsTheOldWords) {
  WarmStart settings{.from = "old", .patterns = {"linear"}};
  settings.vocabularies[kColor] = {
      .new_words = {"red", "green", "blue"}, .old_words = {"red", "green", "blue"}, .old_size = 2};
  ASSERT_TRUE(Begin(settings).ok());
  const auto old = Floats("old", kColor);
  EXPECT_EQ(Floats("new", kColor), (std::vector<float>{old[0], old[1], 0}));
}

TEST_F(WarmStartTest, ColumnsFollowTheirWordsToo) {
  const char* const kName = "dnn/input_from_feature_columns/input_layer/e/embedding_weights";
  WarmStart settings{.from = "old", .patterns = {"dnn/input"}};
  settings.vocabularies[kName] = {
      .new_words = {"d", "x", "b", "a"}, .old_words = {"a", "b", "c", "d"}, .axis = 1};
  const absl::Status status = Begin(settings);
  ASSERT_TRUE(status.ok()) << status;
  const auto old = Floats("old", kName), now = Floats("new", kName);
  for (int row = 0; row < 10; ++row) {
    EXPECT_EQ(now[4 * row], old[4 * row + 3]);
    EXPECT_EQ(now[4 * row + 1], 0);
    EXPECT_EQ(now[4 * row + 2], old[4 * row + 1]);
    EXPECT_EQ(now[4 * row + 3], old[4 * row]);
  }
}

TEST_F(WarmStartTest, ChangedVocabulariesAreFoundInAModelFolder) {
  std::string yaml(kTestSpec);
  yaml.replace(yaml.find("[red, green, blue]"), 18, "[blue, red]");
  ASSERT_TRUE(Train("old", Training()).ok());
  const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
  const auto changed = ChangedVocabularies(*files_, {.from = "old"}, *spec);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_EQ(changed->size(), 1u);
  EXPECT_EQ(changed->at(kColor), (VocabInfo{.new_words = {"blue", "red"},
                                            .old_words = {"red", "green", "blue"},
                                            .keep_initial = true}));
  ASSERT_TRUE(Begin({.from = "old", .vocabularies = *changed}, yaml).ok());
  const auto old = Floats("old", kColor);
  EXPECT_EQ(Floats("new", kColor), (std::vector<float>{old[2], old[0]}));
  EXPECT_TRUE(ChangedVocabularies(*files_, {.from = "nowhere"}, *spec)->empty());
  EXPECT_TRUE(ChangedVocabularies(*files_, {.from = "old", .patterns = {"dnn"}}, *spec)->empty());
}

constexpr std::string_view kSharedSpec = R"(
inputs: {id: int, x: float, color: string, tones: {type: string, list: true},
         parts: {type: float, list: true}, y: int}
label: y
columns:
  color: {vocabulary: color, words: [red, green, blue]}
  tones: {vocabulary: tones, words: [red, green, blue]}
  mixed: {weighted: tones, weights: parts}
  color_e: {embedding: color, dimension: 2, shared: colors}
  mixed_e: {embedding: mixed, dimension: 2, shared: colors}
  has: {indicator: color}
model:
  type: wide_deep
  linear: {columns: [mixed, has]}
  dnn: {columns: [color_e, mixed_e], hidden_units: [2]}
)";

TEST_F(WarmStartTest, ATableThatColumnsShareFollowsTheirWords) {
  Write("shared.csv", "id,x,color,tones,parts,y\n1,0,red,red|blue,1|2,1\n2,0,blue,green,3,0\n");
  ASSERT_TRUE(Train("old", Training("shared.csv"), kSharedSpec).ok());
  std::string yaml(kSharedSpec);
  for (const char* column : {"color: {voc", "tones: {voc"}) {
    yaml.replace(yaml.find("[red, green, blue]", yaml.find(column)), 18,
                 "[blue, white, red, gray]");
  }
  const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto changed = ChangedVocabularies(*files_, {.from = "old"}, *spec);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_THAT(*changed, testing::ElementsAre(testing::Key("colors"),
                                             testing::Key("linear/linear_model/has/weights"),
                                             testing::Key("linear/linear_model/mixed/weights")));
  const auto estimator = NewEstimator(yaml, "new");
  estimator->set_warm_start({.from = "old", .vocabularies = *changed});
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto begun = estimator->Train(Training("shared.csv"), progress, now_);
  ASSERT_TRUE(begun.ok()) << begun.status();
  for (const char* name :
       {"colors", "linear/linear_model/has/weights", "linear/linear_model/mixed/weights"}) {
    const auto old = Floats("old", name), now = Floats("new", name);
    const size_t cols = old.size() / 3;
    ASSERT_EQ(now.size(), 4 * cols) << name;
    for (size_t i = 0; i < cols; ++i) {
      EXPECT_EQ(now[i], old[2 * cols + i]) << name;  // blue
      EXPECT_EQ(now[2 * cols + i], old[i]) << name;  // red
    }
  }
}

TEST_F(WarmStartTest, ASharedTableWhoseColumnsChangedDifferentlyIsRefused) {
  ASSERT_TRUE(files_->MakeFolders("old").ok());
  const auto old = model::ParseModelSpec(*files_, kSharedSpec, "spec.yaml");
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_TRUE(model::SaveModelSpec(*files_, *old, "old").ok());
  std::string yaml(kSharedSpec);
  yaml.replace(yaml.find("[red, green, blue]"), 18, "[blue, green, red]");
  const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto changed = ChangedVocabularies(*files_, {.from = "old"}, *spec);
  EXPECT_TRUE(absl::IsFailedPrecondition(changed.status())) << changed.status();
  EXPECT_THAT(std::string(changed.status().message()),
              HasSubstr("table 'colors' (color, mixed) share it"));
  EXPECT_TRUE(ChangedVocabularies(*files_, {.from = "old", .patterns = {"linear"}}, *spec).ok());
}

TEST_F(WarmStartTest, ADamagedCheckpointsErrorNamesAnIntactOne) {
  ASSERT_TRUE(Train("old", Training()).ok());
  const auto newest = checkpoint::Latest(*files_, "old");
  ASSERT_TRUE(newest.ok()) << newest.status();
  const std::string path = *newest + ".data-00000-of-00001";
  std::string bytes = io::ReadFile(*files_, path).value();
  for (char& byte : bytes) byte = static_cast<char>(byte ^ 1);
  Write(path, bytes);
  EXPECT_THAT(Message({.from = "old"}),
              HasSubstr("to start from old/model.ckpt-0, give it instead"));
}

TEST_F(WarmStartTest, VariablesCanHavePreviousNames) {
  WarmStart settings{.from = "old", .patterns = {"linear/linear_model/bias"}};
  settings.previous_names["linear/linear_model/bias_weights"] = "dnn/logits/bias";
  ASSERT_TRUE(Begin(settings).ok());
  EXPECT_EQ(Floats("new", "linear/linear_model/bias_weights"), Floats("old", "dnn/logits/bias"));
}

TEST_F(WarmStartTest, EachErrorHasItsMessage) {
  EXPECT_THAT(Message({.from = "nowhere"}), HasSubstr("'nowhere' is neither a checkpoint"));
  EXPECT_THAT(Message({.from = ""}), HasSubstr("names no checkpoint"));
  EXPECT_THAT(Message({.from = "old", .patterns = {"(("}}), HasSubstr("'((' is not a regular"));
  EXPECT_THAT(Message({.from = "old", .patterns = {"lineer", "dmn"}}),
              HasSubstr("no variable of the model matches lineer, dmn; the model has "));
  WarmStart settings{.from = "old"};
  settings.previous_names["linear/bias"] = "x";
  EXPECT_THAT(Message(settings), HasSubstr("previous_names names 'linear/bias', which is not"));
  settings = {.from = "old", .patterns = {"dnn"}};
  settings.vocabularies[kColor] = {};
  EXPECT_THAT(Message(settings),
              HasSubstr("vocabularies names 'linear/linear_model/color/weights'"));
  settings = {.from = "old"};
  settings.previous_names[kColor] = "linear/linear_model/colour/weights";
  EXPECT_THAT(Message(settings), HasSubstr("has no 'linear/linear_model/colour/weights' (did you "
                                           "mean 'linear/linear_model/color/weights'?)"));
  settings.previous_names[kColor] = "global_step";
  EXPECT_THAT(Message(settings), HasSubstr("is int64, not float32"));
  std::string wider(kTestSpec);
  wider.replace(wider.find("dimension: 4"), 12, "dimension: 8");
  EXPECT_THAT(Message({.from = "old"}, wider), HasSubstr("is [10, 4], the model has [10, 8]"));
  settings = {.from = "old"};
  settings.vocabularies[kColor] = {.new_words = {"red"}, .old_words = {"red"}};
  EXPECT_THAT(Message(settings), HasSubstr("the new vocabulary has 1 words"));
  settings.vocabularies[kColor] = {.new_words = {"a", "b", "c"}, .old_words = {"x", "y", "z", "a"}};
  EXPECT_THAT(Message(settings), HasSubstr("the old vocabulary has more than the 3 words"));
}

TEST(ParseWarmStartTest, PathAndPattern) {
  EXPECT_EQ(ParseWarmStart("model")->from, "model");
  EXPECT_EQ(ParseWarmStart("model:dnn/.*")->patterns, (std::vector<std::string>{"dnn/.*"}));
  EXPECT_EQ(ParseWarmStart("hdfs://a/b")->from, "hdfs://a/b");
  EXPECT_EQ(ParseWarmStart("hdfs://a:8020/b:x")->from, "hdfs://a:8020/b");
  EXPECT_EQ(ParseWarmStart("hdfs:/b:x")->from, "hdfs:/b");
  EXPECT_EQ(ParseWarmStart("hdfs://a/b:(?:x)")->patterns, (std::vector<std::string>{"(?:x)"}));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseWarmStart(":x").status()));
}

}  // namespace
}  // namespace muster::train
