#include "muster/train/loop/hooks/summary_saver.h"

#include <map>

#include "muster/formats/graph_def_test_util.h"
#include "muster/formats/tfrecord.h"
#include "muster/train/loop/hooks/histogram.h"
#include "muster/train/loop/hooks/run_summary.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;

class SummarySaverTest : public TrainingTest {
 protected:
  // The encoded Events of the model's folder, without those of its subfolders.
  std::vector<std::string> Records(const std::string& folder) {
    std::vector<std::string> records;
    const auto names = files_->List(folder);
    for (const std::string& name : *names) {
      if (name.find("tfevents") == std::string::npos) continue;
      const std::string path = StrCat(folder, "/", name);
      const std::string bytes = *io::ReadFile(*files_, path);
      EXPECT_TRUE(formats::ForEachRecord(bytes, path, 0, [&](size_t offset, size_t size) {
                    records.push_back(bytes.substr(offset, size));
                  }).ok());
    }
    return records;
  }

  // The steps at which each tag has a value in this field of Summary.Value.
  std::map<std::string, std::vector<int64_t>> Tags(const std::string& folder, int field) {
    std::map<std::string, std::vector<int64_t>> tags;
    for (const std::string& event : Records(folder)) {
      const int64_t step = std::max<int64_t>(formats::GetInt(event, 2), 0);
      for (const std::string& value : formats::GetBytes(formats::FirstBytes(event, 5), 1)) {
        if (!formats::FirstBytes(value, field).empty()) {
          tags[formats::FirstBytes(value, 1)].push_back(step);
        }
      }
    }
    return tags;
  }

  static constexpr int kHistogram = 5, kTensor = 8;
};

TEST_F(SummarySaverTest, WritesScalarsAndHistogramsAtTheirSteps) {
  RunConfig config = Config("model");
  config.save_summary_steps = 20;
  config.histogram_steps = 30;
  ASSERT_TRUE(Train(config, Training()).ok());  // 57 steps
  std::map<std::string, std::vector<int64_t>> scalars;
  std::map<std::string, float> last;
  for (const auto& event : Events("model")) {
    scalars[event.tag].push_back(event.step);
    last[event.tag] = event.value;
  }
  for (const char* tag : {"loss", "bias", "dnn/learning_rate", "linear/learning_rate",
                          "dnn/hiddenlayer_0/fraction_of_zero_values",
                          "dnn/logits/fraction_of_zero_values", "linear/fraction_of_zero_values"}) {
    EXPECT_THAT(scalars[tag], ElementsAre(20, 40, 57)) << tag;
  }
  EXPECT_THAT(scalars["fraction_of_zero_weights"], ElementsAre(0, 30, 57));
  EXPECT_FLOAT_EQ(last["linear/learning_rate"], 0.1f);
  EXPECT_EQ(last["dnn/logits/fraction_of_zero_values"], 0);

  const auto histograms = Tags("model", kHistogram);
  EXPECT_THAT(histograms.at("dnn/hiddenlayer_0/activation"), ElementsAre(30, 57));
  EXPECT_THAT(histograms.at("linear/activation"), ElementsAre(30, 57));
  for (const char* tag :
       {"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/batchnorm_0/moving_mean",
        "dnn/input_from_feature_columns/input_layer/e/embedding_weights",
        "linear/linear_model/color/weights", "linear/linear_model/bias_weights"}) {
    ASSERT_THAT(histograms, Contains(Key(tag)));
    EXPECT_THAT(histograms.at(tag), ElementsAre(0, 30, 57)) << tag;
  }

  const auto weights = Weights("model");
  const std::string& bias = weights.at("linear/linear_model/bias_weights");
  EXPECT_EQ(last["bias"], *reinterpret_cast<const float*>(bias.data()));
}

TEST_F(SummarySaverTest, IntervalsOfZeroWriteNoHistogramsAndNoSummaries) {
  RunConfig config = Config("model");
  config.histogram_steps = 0;
  ASSERT_TRUE(Train(config, Training()).ok());
  EXPECT_TRUE(Tags("model", kHistogram).empty());
  EXPECT_THAT(Tags("model", kTensor), Contains(Key("spec")));
  config = Config("model2");
  config.save_summary_steps = 0;
  ASSERT_TRUE(Train(config, Training()).ok());
  EXPECT_TRUE(Tags("model2", kHistogram).empty());
  EXPECT_TRUE(Tags("model2", kTensor).empty());
}

TEST_F(SummarySaverTest, SummariesDoNotChangeTheTraining) {
  RunConfig config = Config("seen");
  config.histogram_steps = 1;
  config.save_summary_steps = 1;
  ASSERT_TRUE(Train(config, Training()).ok());
  config = Config("unseen");
  config.save_summary_steps = 0;
  ASSERT_TRUE(Train(config, Training()).ok());
  EXPECT_EQ(Weights("seen"), Weights("unseen"));
}

TEST_F(SummarySaverTest, TheRunIsDescribedAtItsStart) {
  ASSERT_TRUE(Train("model", Training()).ok());
  const auto tensors = Tags("model", kTensor);
  EXPECT_THAT(tensors.at("spec"), ElementsAre(0));
  EXPECT_THAT(tensors.at("_hparams_/experiment"), ElementsAre(0));
  EXPECT_THAT(tensors.at("_hparams_/session_start_info"), ElementsAre(0));
  EXPECT_THAT(tensors.at("_hparams_/session_end_info"), ElementsAre(57));
  int graphs = 0;
  for (const std::string& event : Records("model")) {
    graphs += !formats::GetBytes(formats::FirstBytes(event, 4), 1).empty();
  }
  EXPECT_EQ(graphs, 1);
}

TEST_F(SummarySaverTest, ASignalLeavesTheSessionOpen) {
  const auto estimator = NewEstimator(kTestSpec, "model");
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const std::atomic<bool> stop{true};
  const auto result = estimator->Train(Training(), progress, stop);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->interrupted);
  EXPECT_THAT(Tags("model", kTensor), Contains(Key("_hparams_/session_start_info")));
  EXPECT_THAT(Tags("model", kTensor), Not(Contains(Key("_hparams_/session_end_info"))));
}

TEST_F(SummarySaverTest, SettingsAreThoseOfTheRun) {
  const auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  ASSERT_TRUE(spec.ok());
  TrainSpec training = Training();
  training.input.reader.batch_size = 99;
  training.max_steps = 7;
  RunConfig config = Config("model");
  config.seed = 11;
  config.threads = 2;
  std::map<std::string, formats::HparamValue> settings;
  for (const auto& [name, value] : RunSettings(*spec, training, config)) settings[name] = value;
  EXPECT_EQ(settings.at("train/batch_size"), formats::HparamValue(99.0));
  EXPECT_EQ(settings.at("train/max_steps"), formats::HparamValue(7.0));
  EXPECT_EQ(settings.at("train/seed"), formats::HparamValue(11.0));
  EXPECT_EQ(settings.at("train/threads"), formats::HparamValue(2.0));
  EXPECT_EQ(settings.at("dnn/dropout"), formats::HparamValue(0.2));

  // A model that comes from no file has only the settings of the run.
  settings.clear();
  for (const auto& [name, value] : RunSettings({}, training, config)) settings[name] = value;
  EXPECT_THAT(settings, Not(Contains(Key("type"))));
  EXPECT_EQ(settings.at("train/batch_size"), formats::HparamValue(99.0));
}

}  // namespace
}  // namespace muster::train
