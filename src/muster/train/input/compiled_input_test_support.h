// For tests of inputs with a cache of compiled features: a model with columns of every kind, rows
// for it, and what an input gives, as text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/random.h"
#include "muster/base/strings.h"
#include "muster/train/input/compiled/feature_cache.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {

inline constexpr int kCompiledRows = 24010;  // in two chunks
inline constexpr std::string_view kCompiledColumns = R"(
inputs:
  id: int
  x: float
  color: string
  tags: {type: string, list: true}
  sizes: {type: float, list: true}
  who: int
  w: float
  y: int
label: y
weight: w
columns:
  x: {numeric: x, mean: 1, stddev: 2}
  many: {numeric: sizes, shape: 2}
  ranges: {bucketized: sizes, shape: 2, boundaries: [0.2, 0.7]}
  color: {vocabulary: color, words: [red, green]}
  color_hash: {hash: color, buckets: 70000}
  tag_hash: {hash: tags, buckets: 300}
  pair: {cross: [color, who], buckets: 20000000}
  grown: {keys: who}
  tag_kinds: {indicator: tag_hash}
  e: {embedding: tag_hash, dimension: 4}
  g: {embedding: grown, dimension: 4}
  h: {embedding: color_hash, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [color, pair, ranges]}
  dnn: {columns: [x, many, e, g, h, tag_kinds], hidden_units: [8]}
train: {batch_size: 64, epochs: 3, seed: 5}
)";

inline std::string CompiledInputRows(int rows) {
  static constexpr const char* kColors[] = {"red", "green", "blue", ""};
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::string csv = "id,x,color,tags,sizes,who,w,y\n";
  for (int i = 0; i < rows; ++i) {
    std::string tags;
    for (uint64_t k = random.Below(4); k > 0; --k) {
      tags += StrCat(tags.empty() ? "" : "|", "t", random.Below(50));
    }
    csv += StrCat(i, ",", random.Normal(), ",", kColors[random.Below(4)], ",", tags, ",",
                  random.UniformDouble(), "|", random.UniformDouble(), ",",
                  static_cast<int64_t>(random.Below(1000)) - 1, ",", random.Below(3), ",",
                  random.Below(2), "\n");
  }
  return csv;
}

class CompiledInputTest : public TrainingTest {
 protected:
  CompiledInputTest() {
    Write("rows.csv", CompiledInputRows(kCompiledRows));
    folder_ = testing::TempDir() + "compiled-" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    SetModel(kCompiledColumns);
    spec_.source.patterns = {"rows.csv"};
    spec_.reader = {.batch_size = 64, .shuffle = true, .seed = 5, .open_chunks = 3, .epochs = 2};
  }
  ~CompiledInputTest() override { std::filesystem::remove_all(folder_); }

  void SetModel(std::string_view text) {
    auto spec = model::ParseModelSpec(*files_, text, "spec.yaml");
    ASSERT_TRUE(spec.ok()) << spec.status();
    auto model = model::BuildModel(*spec);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  std::shared_ptr<const FeatureCache> OpenCache(FeatureCacheOptions options = {}) {
    options.folder = folder_;
    auto cache = FeatureCache::Open(options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return *std::move(cache);
  }
  std::unique_ptr<Input> Open(std::shared_ptr<const FeatureCache> cache,
                              const data::Position* start = nullptr) {
    spec_.cache = std::move(cache);
    auto input = Input::Open(*files_, model_, spec_, start);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  }
  std::vector<std::string> Compiled() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().string());
    }
    return names;
  }

  template <typename Number>
  static void Print(const std::vector<Number>& values, std::string* text) {
    *text += StrCat("[", values.size(), ":");
    text->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
    *text += "]";
  }
  static std::string Describe(const InputBatch& batch) {
    std::string text = StrCat(batch.epoch, " ", batch.shard, " ", batch.dropped, " ");
    Print(batch.features.labels, &text);
    Print(batch.features.weights, &text);
    for (const auto& column : batch.features.dense) Print(column.values, &text);
    for (const auto& list : batch.features.id_lists) {
      Print(list.ids, &text);
      Print(list.offsets, &text);
      Print(list.weights, &text);
      Print(list.keys, &text);
    }
    return text + data::SerializePosition(batch.position);
  }
  // All batches as text, and the end with its counts.
  std::vector<std::string> ReadAll(Input& input) { return ReadAll(input, &warnings_); }
  static std::vector<std::string> ReadAll(Input& input, std::vector<std::string>* warnings) {
    std::vector<std::string> all;
    while (true) {
      const auto batch = input.Next();
      for (std::string& warning : input.ConsumeWarnings()) warnings->push_back(warning);
      if (!batch.ok()) {
        all.emplace_back(ToStd(batch.status().message()));
        return all;
      }
      if (*batch == nullptr) break;
      all.push_back(Describe(**batch));
    }
    all.push_back(StrCat("end ", input.dropped_at_end(), " ", input.bad_records(), " ",
                         input.steps(), " ", input.records()));
    return all;
  }

  std::string folder_;
  model::Model model_;
  InputSpec spec_;
  std::vector<std::string> warnings_;
};

}  // namespace muster::train
