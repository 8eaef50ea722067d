// Shared by the tests of this layer: a small table of data, a model for it, and trainings in
// memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/random.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/io/memory_file_system.h"
#include "muster/train/estimator.h"

namespace muster::train {

constexpr std::string_view kTestSpec = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
key: id
columns:
  x: {numeric: x}
  color: {vocabulary: color, words: [red, green, blue]}
  color_hash: {hash: color, buckets: 10}
  e: {embedding: color_hash, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [color], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn:
    {columns: [x, e], hidden_units: [8], dropout: 0.2, batch_norm: true,
     optimizer: {adagrad: {learning_rate: 0.05}}}
train: {batch_size: 16, epochs: 3, seed: 5}
)";

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() : files_(io::NewMemoryFileSystem()) { Write("train.csv", Csv(300)); }

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
  }

  // Rows whose label depends on x and color.
  static std::string Csv(int rows) {
    static constexpr const char* kColors[] = {"red", "green", "blue"};
    RandomStream random(1, RandomPurpose::kSampleData, 0);
    std::string csv = "id,x,color,y\n";
    for (int i = 0; i < rows; ++i) {
      const double x = random.Normal();
      const uint64_t color = random.Below(3);
      const double logit = 2 * x + (color == 0 ? 1.5 : -1);
      const bool y = random.UniformDouble() < 1 / (1 + std::exp(-logit));
      csv += StrCat(i, ",", x, ",", kColors[color], ",", y ? 1 : 0, "\n");
    }
    return csv;
  }

  std::unique_ptr<Estimator> NewEstimator(std::string_view yaml, const std::string& folder,
                                          int threads = 1) {
    auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status();
    RunConfig config = Config(folder);
    config.seed = spec->train.seed;
    config.threads = threads;
    auto estimator = Estimator::Create(*files_, clock_, *spec, config);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    return std::move(*estimator);
  }

  static RunConfig Config(const std::string& folder) {
    RunConfig config;
    config.model_dir = folder;
    return config;
  }

  static TrainSpec Training(const std::string& data = "train.csv") {
    TrainSpec spec;
    spec.input.source.patterns = {data};
    spec.input.reader.batch_size = 16;
    spec.input.reader.shuffle = true;
    spec.input.reader.seed = 5;
    spec.input.reader.epochs = 3;
    return spec;
  }

  absl::StatusOr<TrainResult> Train(const std::string& folder, const TrainSpec& spec,
                                    std::string_view yaml = kTestSpec, int threads = 1) {
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto estimator = NewEstimator(yaml, folder, threads);
    if (!warm_start_from_.empty()) estimator->set_warm_start({.from = warm_start_from_});
    return estimator->Train(spec, progress, never_);
  }

  absl::StatusOr<TrainResult> Train(const RunConfig& config, const TrainSpec& spec,
                                    std::string_view yaml = kTestSpec) {
    const auto model = model::ParseModelSpec(*files_, yaml, "spec.yaml");
    EXPECT_TRUE(model.ok()) << model.status();
    const auto estimator = Estimator::Create(*files_, clock_, *model, config);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return (*estimator)->Train(spec, progress, never_);
  }

  // The scalars of all event files in a folder, file after file.
  std::vector<formats::ScalarEvent> Events(const std::string& folder) {
    std::vector<formats::ScalarEvent> all;
    const auto names = files_->List(folder);
    EXPECT_TRUE(names.ok()) << names.status();
    for (const std::string& name : *names) {
      if (name.find("tfevents") == std::string::npos) continue;
      const auto events = formats::ReadScalarEvents(*files_, StrCat(folder, "/", name));
      EXPECT_TRUE(events.ok()) << events.status();
      all.insert(all.end(), events->begin(), events->end());
    }
    return all;
  }

  static EvalSpec Evaluation(const std::string& data = "train.csv") {
    EvalSpec spec;
    spec.input.source.patterns = {data};
    return spec;
  }

  // All tensors of the newest checkpoint, as bytes.
  std::map<std::string, std::string> Weights(const std::string& folder) {
    const auto prefix = checkpoint::Latest(*files_, folder);
    EXPECT_TRUE(prefix.ok()) << prefix.status();
    const auto bundle = formats::BundleReader::Open(*files_, *prefix);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    std::map<std::string, std::string> weights;
    for (const auto& [name, info] : (*bundle)->tensors()) {
      if (info.type == formats::DataType::kString) continue;
      std::string bytes(info.bytes, '\0');
      EXPECT_TRUE((*bundle)->Read(name, {bytes.data(), bytes.size()}).ok()) << name;
      weights[name] = bytes;
    }
    return weights;
  }
  static std::vector<float> Floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::unique_ptr<io::FileSystem> files_;
  FakeClock clock_;
  std::atomic<bool> never_{false};
  std::string warm_start_from_ = {};  // of Train; "": none
};

}  // namespace muster::train
