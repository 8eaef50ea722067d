// Compares the metrics of every head with tf.estimator's, on the batches of testdata/heads.txt,
// which make_head_values.py wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "muster/base/random.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/metrics/metrics.h"

namespace muster::metrics {
namespace {

using engine::HeadSpec;
using testing::HasSubstr;

struct HeadBatch {
  std::vector<float> logits, labels, weights;
};

struct HeadCase {
  HeadSpec head = {};
  MetricsSpec spec = {};
  std::vector<HeadBatch> batches = {};
  std::map<std::string, double> values = {};
};

void ReadRow(std::istringstream& words, HeadBatch* batch) {
  float number = 0;
  std::string word;
  words >> number >> word;
  batch->weights.push_back(number);
  while (words >> word && word != "|") batch->logits.push_back(std::stof(word));
  while (words >> word) batch->labels.push_back(std::stof(word));
}

std::map<std::string, HeadCase> CommittedHeadCases() {
  std::map<std::string, HeadCase> cases;
  const MetricsSpec thresholds{.thresholds = {0.3, 0.75}};
  cases["binary"] = {.head = {}, .spec = thresholds};
  cases["multi_class"] = {.head = {.kind = "multi_class", .classes = 4},
                          .spec = {.top_k = {1, 2, 3}, .per_class = true}};
  cases["multi_label"] = {.head = {.kind = "multi_label", .classes = 3},
                          .spec = {.thresholds = {0.3, 0.75}, .per_class = true}};
  cases["regression"] = {.head = {.kind = "regression", .label_dimension = 2}};
  cases["poisson"] = {.head = {.kind = "regression", .loss = "poisson"}};
  cases["log_normal"] = {
      .head = {.kind = "regression", .loss = "log_normal", .label_dimension = 2}};
  std::ifstream file(MUSTER_TESTDATA "/heads.txt");
  HeadCase* one = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "case") {
      words >> name;
      one = &cases.at(name);
    } else if (kind == "batch") {
      one->batches.emplace_back();
    } else if (kind == "row") {
      ReadRow(words, &one->batches.back());
    } else {
      words >> name >> one->values[name];
    }
  }
  return cases;
}

// The losses of the batches are given here; a head computes its loss itself
// (engine/heads/head_test.cc).
std::unique_ptr<Metrics> MakeMetrics(const HeadCase& one) {
  auto metrics = NewMetrics(one.head, one.spec, {});
  EXPECT_TRUE(metrics.ok()) << metrics.status();
  return *std::move(metrics);
}

std::map<std::string, double> GetValues(const Metrics& metrics) {
  const auto values = metrics.Values();
  return {values.begin(), values.end()};
}

TEST(HeadMetricsTest, AgreeWithTfEstimator) {
  for (const auto& [name, one] : CommittedHeadCases()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(one.batches.size(), 3u);
    const auto metrics = MakeMetrics(one);
    for (const HeadBatch& batch : one.batches) {
      metrics->Add(batch.logits, batch.labels, batch.weights);
    }
    const auto values = GetValues(*metrics);
    int compared = 0;
    for (const auto& [metric, expected] : one.values) {
      ASSERT_TRUE(values.contains(metric)) << metric;
      if (metric == "loss" || metric == "average_loss") continue;
      ++compared;
      EXPECT_NEAR(values.at(metric), expected, 1e-5 * std::max(1.0, std::fabs(expected))) << metric;
    }
    EXPECT_GE(compared, 5);
    EXPECT_EQ(values.size(), one.values.size()) << "a metric was compared with nothing";
  }
}

TEST(HeadMetricsTest, MergedShardsGiveTheMetricsOfTheWhole) {
  RandomStream random(20261121, RandomPurpose::kSampleData, 0);
  for (const auto& [name, one] : CommittedHeadCases()) {
    SCOPED_TRACE(name);
    const auto whole = MakeMetrics(one);
    std::unique_ptr<Metrics> shards[3] = {MakeMetrics(one), MakeMetrics(one), MakeMetrics(one)};
    const auto width = static_cast<size_t>(one.head.logits_dimension());
    const auto labels = static_cast<size_t>(one.head.labels_dimension());
    for (const HeadBatch& batch : one.batches) {
      for (size_t row = 0; row < batch.weights.size(); ++row) {
        Metrics& shard = *shards[random.Below(3)];
        for (Metrics* metrics : {whole.get(), &shard}) {
          metrics->Add(std::span(batch.logits).subspan(row * width, width),
                       std::span(batch.labels).subspan(row * labels, labels),
                       std::span(batch.weights).subspan(row, 1));
          metrics->AddLoss(0.25 * static_cast<double>(row), 1);
        }
      }
    }
    const auto by_state = MakeMetrics(one);
    for (const int i : {2, 0, 1}) {
      const auto state = ParseState(Serialize(shards[i]->GetState()), "state");
      ASSERT_TRUE(state.ok()) << state.status();
      ASSERT_TRUE(by_state->Merge(*state).ok());
    }
    ASSERT_TRUE(shards[2]->Merge(*shards[0]).ok());
    ASSERT_TRUE(shards[2]->Merge(*shards[1]).ok());
    EXPECT_EQ(GetValues(*by_state), GetValues(*shards[2]))
        << "merging states must give the same bits";
    const auto expected = GetValues(*whole);
    for (const auto& [metric, value] : shards[2]->Values()) {
      EXPECT_NEAR(value, expected.at(metric), 1e-9 * std::max(1.0, std::fabs(value))) << metric;
    }
  }
}

TEST(HeadMetricsTest, OnlyMetricsOfTheSameKindCanBeMerged) {
  const auto cases = CommittedHeadCases();
  for (const auto& [name, one] : cases) {
    for (const auto& [other_name, other] : cases) {
      EXPECT_EQ(MakeMetrics(one)->Merge(*MakeMetrics(other)).ok(), name == other_name)
          << name << " " << other_name;
    }
  }
}

// tf.estimator divides average_loss by the sum of weights; its loss is the mean over batches of sum
// / rows.
TEST(HeadMetricsTest, Losses) {
  const std::vector<float> logits = {1, 2, 3}, labels = {1, 2, 3}, weights = {2, 0, 1};
  const auto metrics = MakeMetrics({.head = {.kind = "regression"}});
  metrics->Add(logits, labels, weights);
  metrics->AddLoss(6, 3);
  metrics->Add(std::vector<float>{1}, std::vector<float>{1}, {});
  metrics->AddLoss(1, 1);
  EXPECT_EQ(GetValues(*metrics).at("average_loss"), 7.0 / 4);
  EXPECT_EQ(GetValues(*metrics).at("loss"), 1.5);
}

TEST(HeadMetricsTest, CalibrationByBucket) {
  const auto metrics = MakeMetrics({.head = {}, .spec = {.calibration_buckets = 4}});
  // These logits have the probabilities 0.5, 0.2689, 0.7311 and 1.
  metrics->Add(std::vector<float>{0, -1, 1, 100}, std::vector<float>{1, 0, 1, 1},
               std::vector<float>{1, 2, 1, 4});
  const auto values = GetValues(*metrics);
  const double low = 1 / (1 + std::exp(1.0));
  EXPECT_NEAR(values.at("calibration"), (0.5 + 2 * low + (1 - low) + 4) / 6, 1e-6);
  EXPECT_EQ(values.at("calibration/bucket_0/weight"), 0);
  EXPECT_TRUE(std::isnan(values.at("calibration/bucket_0/label_mean")));
  EXPECT_EQ(values.at("calibration/bucket_1/weight"), 2);
  EXPECT_NEAR(values.at("calibration/bucket_1/prediction_mean"), low, 1e-6);
  EXPECT_EQ(values.at("calibration/bucket_1/label_mean"), 0);
  EXPECT_NEAR(values.at("calibration/bucket_2/prediction_mean"), (0.5 + 1 - low) / 2, 1e-6);
  EXPECT_EQ(values.at("calibration/bucket_3/weight"), 4);
  // Bucket 1 adds |0 - 2 low|, bucket 2 |2 - 0.5 - (1 - low)|, bucket 3 nothing; the weight is 8.
  EXPECT_NEAR(values.at("calibration/error"), (2 * low + 0.5 + low) / 8, 1e-6);
}

TEST(HeadMetricsTest, GroupedAucIsTheMeanWithinGroupsByTheirWeight) {
  const auto metrics = MakeMetrics({.head = {}, .spec = {.group = "user"}});
  const auto other = MakeMetrics({.head = {}, .spec = {.group = "user"}});
  // Group 7 has the right order and weight 3; group 5 is half right (a tie), weight 2; group 1 has
  // one class.
  metrics->AddGroups(std::vector<uint64_t>{7, 5, 1});
  metrics->Add(std::vector<float>{-3, 2, 9}, std::vector<float>{0, 1, 1}, {});
  other->AddGroups(std::vector<uint64_t>{5, 7});
  other->Add(std::vector<float>{2, -1}, std::vector<float>{0, 1}, std::vector<float>{1, 2});
  ASSERT_TRUE(metrics->Merge(other->GetState()).ok());
  const auto values = GetValues(*metrics);
  EXPECT_DOUBLE_EQ(values.at("gauc"), (3 * 1.0 + 2 * 0.5) / 5);
  EXPECT_EQ(values.at("gauc/groups"), 2);
  EXPECT_EQ(values.at("gauc/groups_left_out"), 1);
  const auto none = MakeMetrics({.head = {}, .spec = {.group = "user"}});
  EXPECT_TRUE(std::isnan(GetValues(*none).at("gauc")));
}

TEST(HeadMetricsTest, PerClassMetricsAreNamedByTheLabelsWords) {
  auto metrics = NewMetrics({.kind = "multi_class", .classes = 3}, {.per_class = true},
                            {"red", "green", "blue"});
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  (*metrics)->Add(std::vector<float>{1, 0, 0, 1, 0, 0}, std::vector<float>{0, 1}, {});
  const auto values = GetValues(**metrics);
  EXPECT_EQ(values.at("accuracy/red"), 1);
  EXPECT_EQ(values.at("accuracy/green"), 0);
  EXPECT_TRUE(std::isnan(values.at("accuracy/blue")));
  EXPECT_EQ(values.at("mean_per_class_accuracy"), 0.5);
}

TEST(HeadMetricsTest, InfiniteLogitsAreNotInTheTopK) {
  const auto metrics =
      MakeMetrics({.head = {.kind = "multi_class", .classes = 3}, .spec = {.top_k = {3}}});
  metrics->Add(std::vector<float>{INFINITY, 0, 0, 1, 1, 1}, std::vector<float>{0, 0}, {});
  EXPECT_EQ(GetValues(*metrics).at("accuracy/top_3"), 0.5);
}

TEST(HeadMetricsTest, SettingsThatDoNotApplyToAHeadAreRefused) {
  const auto message = [](const HeadSpec& head, const MetricsSpec& spec) {
    return std::string(NewMetrics(head, spec, {}).status().message());
  };
  const HeadSpec regression{.kind = "regression"};
  EXPECT_THAT(message(regression, {.thresholds = {0.5}}), HasSubstr("binary and multi_label"));
  EXPECT_THAT(message(regression, {.calibration_buckets = 3}), HasSubstr("it is for binary"));
  EXPECT_THAT(message({}, {.top_k = {1}}), HasSubstr("it is for multi_class"));
  EXPECT_THAT(message(regression, {.group = "user"}), HasSubstr("it is for binary"));
  EXPECT_THAT(message({}, {.thresholds = {1.5}}), HasSubstr("not between 0 and 1"));
}

}  // namespace
}  // namespace muster::metrics
