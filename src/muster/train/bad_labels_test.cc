// Rows are left out because of their labels: some or all rows of a batch, of a replica's share, or
// at the end of the data. The next rows take their places, and no step is made without rows.
#include <algorithm>

#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

constexpr std::string_view kLabelsSpec = R"(
inputs: {x: float, y: int}
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x]}
train: {batch_size: 2, seed: 5}
)";

class BadLabelsTest : public PsTrainingTest {
 protected:
  // Writes one row for each character, which is its label; 9 is no label of a binary head.
  void WriteLabels(const std::string& path, std::string_view labels) {
    std::string csv = "x,y\n";
    for (size_t i = 0; i < labels.size(); ++i) csv += StrCat(i, ",", labels.substr(i, 1), "\n");
    Write(path, csv);
  }
  static TrainSpec Spec(int batch_size) {
    TrainSpec spec = Training("labels.csv");
    spec.input.reader.shuffle = false;
    spec.input.reader.batch_size = batch_size;
    spec.input.reader.epochs = 2;
    spec.input.reader.max_bad_records = 8;
    return spec;
  }
  // Evaluates one part of the data in one process.
  absl::StatusOr<metrics::State> Part(int index, int count) {
    EvalSpec spec = Evaluation("labels.csv");
    spec.input.reader = Spec(2).input.reader;
    spec.input.reader.epochs = 1;
    spec.input.source.shard = {
        .index = index, .count = count, .by = data::ShardBy::kRecord, .multiple = 2};
    Progress progress(ProgressStyle::kNone, 2, clock_);
    return NewEstimator(kLabelsSpec, "model")->EvaluatePart(spec, progress);
  }
};

TEST_F(BadLabelsTest, AnEvaluationSkipsABatchOfBadRows) {
  WriteLabels("labels.csv", "01");
  ASSERT_TRUE(Train("model", Spec(2), kLabelsSpec).ok());
  for (const std::string labels : {"019", "9901", "01990199", "9"}) {
    WriteLabels("labels.csv", labels);
    const auto bad = static_cast<uint64_t>(std::count(labels.begin(), labels.end(), '9'));
    for (const int count : {1, 2}) {
      uint64_t rows = 0, left_out = 0;
      for (int part = 0; part < count; ++part) {
        const auto state = Part(part, count);
        ASSERT_TRUE(state.ok()) << labels << ": " << state.status();
        rows += state->rows;
        left_out += state->bad_records;
      }
      EXPECT_EQ(rows, labels.size() - bad) << labels;
      EXPECT_EQ(left_out, bad) << labels;
    }
  }
}

TEST_F(BadLabelsTest, ATrainingMakesNoStepOfBadRows) {
  WriteLabels("labels.csv", "9019");
  for (const auto& [batch_size, steps] : {std::pair(1, 4), {2, 2}, {4, 2}}) {
    const std::string folder = StrCat("model", batch_size);
    const auto result = Train(folder, Spec(batch_size), kLabelsSpec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->step, steps);
    EXPECT_EQ(result->bad_records, 2u) << "bad rows after the last batch count too";
    EXPECT_EQ(result->records, (RecordCounts{.trained = 4}));
  }
}

TEST_F(BadLabelsTest, BatchesAreFilledWithTheNextRows) {
  WriteLabels("labels.csv", "0910911");
  TrainSpec spec = Spec(2);
  spec.input.reader.drop_remainder = true;
  const auto result = Train("model", spec, kLabelsSpec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, 4) << "rows 0 and 2, 3 and 5";
  EXPECT_EQ(result->records, (RecordCounts{.trained = 8, .dropped = 2}));
}

// Bad rows change neither weights nor steps nor counts when a training is continued.
TEST_F(BadLabelsTest, AContinuedTrainingEqualsAnUninterruptedOne) {
  WriteLabels("labels.csv", "909910");
  ASSERT_TRUE(Train("whole", Spec(1), kLabelsSpec).ok());
  for (int64_t steps = 1; steps < 6; ++steps) {
    const std::string folder = StrCat("model", steps);
    TrainSpec some = Spec(1);
    some.max_steps = steps;
    ASSERT_TRUE(Train(folder, some, kLabelsSpec).ok());
    const auto rest = Train(folder, Spec(1), kLabelsSpec);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(rest->bad_records, 3u) << steps;
    EXPECT_EQ(Weights(folder), Weights("whole")) << steps;
  }
}

TEST_F(BadLabelsTest, ReplicasMakeNoStepOfBadRows) {
  // Each of two replicas has one half: in the second half first one batch at the end is bad, then
  // all.
  for (const std::string labels : {"01010099", "01109999"}) {
    WriteLabels("labels.csv", labels);
    const int64_t good =
        std::count_if(labels.begin(), labels.end(), [](char c) { return c < '9'; });
    const std::string reduced = StrCat("reduced", labels);
    // The chief's half has no bad rows.
    const auto bad = static_cast<uint64_t>(std::count(labels.begin(), labels.end(), '9'));
    EXPECT_EQ(TrainByAllReduce(2, Spec(2), reduced, kLabelsSpec).bad_records, bad) << labels;
    for (const bool synchronous : {true, false}) {
      const Shape shape = {.synchronous = synchronous};
      const std::string folder = StrCat("served", labels, synchronous);
      TestServers servers(shape, kLabelsSpec);
      const auto results = RunAll(shape, servers, Spec(2), folder, kLabelsSpec, {});
      for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(results[0]->records, (RecordCounts{.trained = 2 * good})) << labels;
      EXPECT_EQ(results[0]->bad_records, bad) << labels << ", synchronous " << synchronous;
      if (synchronous) ExpectSame(folder, reduced, 1e-5f);
    }
  }
}

}  // namespace
}  // namespace muster::train
