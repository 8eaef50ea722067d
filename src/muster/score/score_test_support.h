// Shared by the tests of Scorer: the results of a Scorer and of an Estimator for the same batches,
// as text that shows every bit.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "muster/score/scorer.h"
#include "muster/train/training_test_support.h"

namespace muster::score {

// Prints names, shapes and the bytes of all values.
inline std::string Describe(const engine::Predictions& predictions) {
  const auto bytes = [](const auto& values) {
    const auto all = std::as_bytes(std::span(values));
    return std::string(reinterpret_cast<const char*>(all.data()), all.size());
  };
  std::string text = StrCat(predictions.rows, " rows");
  for (const engine::PredictionTensor& tensor : predictions.tensors) {
    text += StrCat("\n", tensor.name, " ", tensor.width, " ", tensor.same_in_all_rows, " ",
                   bytes(tensor.floats), bytes(tensor.ints));
    for (const std::string_view value : tensor.strings) text += StrCat(value, ";");
  }
  return text;
}

class ScoreTest : public train::TrainingTest {
 protected:
  static constexpr int kBatchSize = 16;

  // Returns for each batch the predictions that the Estimator gives with the newest weights of
  // "model".
  std::vector<std::string> EstimatorScores(std::string_view yaml, const std::string& data,
                                           int threads) {
    std::vector<std::string> all;
    train::Progress progress(train::ProgressStyle::kNone, 2, clock_);
    const auto take = [&](const train::InputBatch&, const engine::Predictions& predictions) {
      all.push_back(Describe(predictions));
      return absl::OkStatus();
    };
    const auto result =
        NewEstimator(yaml, "model", threads)->Predict(MakeInput(data, false), take, progress);
    EXPECT_TRUE(result.ok()) << result.status();
    return all;
  }

  std::vector<features::FeatureBatch> Batches(const Scorer& scorer, const std::string& data,
                                              bool with_labels = false,
                                              int batch_size = kBatchSize) {
    std::vector<features::FeatureBatch> batches;
    train::InputSpec spec = MakeInput(data, with_labels);
    spec.reader.batch_size = batch_size;
    const auto input = train::Input::Open(*files_, scorer.model(), spec);
    EXPECT_TRUE(input.ok()) << input.status();
    while (true) {
      const auto batch = (*input)->Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok() || *batch == nullptr) return batches;
      batches.push_back((*batch)->features);
    }
  }

  // Returns for each batch the predictions that one thread gets, in the batches' order.
  static std::vector<std::string> AllScores(Scorer& scorer,
                                            const std::vector<features::FeatureBatch>& batches) {
    return ScoresByThreads(scorer, batches, 1)[0];
  }

  // Returns predictions by thread and batch. The threads score all batches at the same time, and
  // each begins with another batch.
  static std::vector<std::vector<std::string>> ScoresByThreads(
      Scorer& scorer, const std::vector<features::FeatureBatch>& batches, size_t threads) {
    std::vector<std::vector<std::string>> all(threads,
                                              std::vector<std::string>(batches.size(), "none"));
    std::vector<std::jthread> running;
    for (size_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        Scores scores;
        for (size_t i = 0; i < batches.size(); ++i) {
          const size_t at = (i + t * batches.size() / threads) % batches.size();
          const absl::Status status = scorer.Score(batches[at], &scores);
          all[t][at] = status.ok() ? Describe(scores.predictions) : status.ToString();
        }
      });
    }
    running.clear();
    return all;
  }

 private:
  static train::InputSpec MakeInput(const std::string& data, bool with_labels) {
    train::InputSpec input;
    input.source.patterns = {data};
    input.reader.batch_size = kBatchSize;
    input.with_labels = with_labels;
    return input;
  }
};

}  // namespace muster::score
