// Rows without a key are numbered by their records' places in the data, whatever is left out and
// however the data is divided. Also tests the records that were left out.
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/score/part_plan.h"
#include "muster/score/prediction_writer.h"
#include "muster/train/input/reject_writer.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kKeylessSpec = R"(
inputs: {x: float, y: int}
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x]}
train: {batch_size: 4, epochs: 1, seed: 5}
)";

class RowNumbersTest : public TrainingTest {
 protected:
  RowNumbersTest() {
    EXPECT_TRUE(Train("model", Training(), kKeylessSpec).ok());
    EXPECT_TRUE(files_->MakeFolders("data").ok());
  }

  InputSpec Rows(const std::string& pattern, uint64_t max_bad_records) {
    InputSpec input;
    input.source.patterns = {pattern};
    input.reader.batch_size = 3;
    input.reader.max_bad_records = max_bad_records;
    input.with_labels = false;
    input.with_keys = true;
    return input;
  }

  // The contents of the file that a prediction of `spec` writes.
  std::string Predict(const PredictSpec& spec, PredictResult* result = nullptr) {
    const auto estimator = NewEstimator(kKeylessSpec, "model");
    auto writer = score::PredictionWriter::Create(*files_, {.path = "out.csv", .key = ""},
                                                  estimator->predictor());
    EXPECT_TRUE(writer.ok()) << writer.status();
    Progress progress(ProgressStyle::kNone, 2, clock_);
    const auto write = [&](const InputBatch& batch, const engine::Predictions& predictions) {
      return (*writer)->Write(batch.keys, predictions);
    };
    const auto predicted = estimator->Predict(spec, write, progress);
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    if (predicted.ok() && result != nullptr) *result = *predicted;
    EXPECT_TRUE((*writer)->Close().ok());
    return io::ReadFile(*files_, "out.csv").value();
  }

  // The first cell of each row.
  static std::vector<std::string> Numbers(const std::string& csv) {
    std::vector<std::string> numbers;
    for (size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1) {
      numbers.push_back(csv.substr(at, csv.find(',', at) - at));
    }
    return numbers;
  }
  static std::string WithoutHeader(const std::string& csv) {
    return csv.substr(csv.find('\n') + 1);
  }
};

TEST_F(RowNumbersTest, ARowThatIsLeftOutKeepsItsNumber) {
  Write("data/a.csv", "x,y\n0,0\n1,1\noops,0\n3,1\n4,0\n");
  Write("data/b.csv", "x,y\n5,1\n6,0\n7\n");
  PredictSpec spec{.input = Rows("data/*.csv", 5)};
  std::vector<data::BadRecord> rejected;
  spec.reject = [&](const data::BadRecord& record) {
    rejected.push_back(record);
    return absl::OkStatus();
  };
  PredictResult result;
  const std::string csv = Predict(spec, &result);
  EXPECT_THAT(Numbers(csv), ElementsAre("0", "1", "3", "4", "5", "6"));
  EXPECT_EQ(result.examples, 6u);
  EXPECT_EQ(result.bad_records, 2u);
  EXPECT_THAT(result.checkpoint, testing::StartsWith("model/model.ckpt-"));
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0].number, 2u);
  EXPECT_EQ(rejected[0].where, "data/a.csv:4");
  EXPECT_EQ(rejected[0].bytes, "oops,0");
  EXPECT_EQ(rejected[1].number, 7u) << "a record after the last batch";
}

TEST_F(RowNumbersTest, PartsJoinedInOrderEqualTheOutputOfOneProcess) {
  Write("data/a.csv", "x,y\n0,0\noops,1\n2,0\n3,1\n");
  Write("data/b.csv", "x,y\n");
  Write("data/c.csv", "x,y\n4,1\n5,0\noops,0\n7,0\n8,1\n");
  const std::string whole = Predict({.input = Rows("data/*.csv", 5)});
  EXPECT_THAT(Numbers(whole), ElementsAre("0", "2", "3", "4", "5", "7", "8"));
  for (const int processes : {2, 3, 4, 9}) {
    const std::string folder = StrCat("parts-", processes);
    const auto wanted = score::MakePartPlan(*files_, {.patterns = {"data/*.csv"},
                                                      .model_dir = "model",
                                                      .suffix = ".csv",
                                                      .processes = processes,
                                                      .numbered = true});
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    ASSERT_TRUE(score::OpenPartPlan(*files_, folder, *wanted).ok());
    // Reads the plan again, as a later process does.
    const auto plan = score::OpenPartPlan(*files_, folder, *wanted);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->by_record, processes > 3);
    std::string all = whole.substr(0, whole.find('\n') + 1);
    for (int part = 0; part < plan->parts; ++part) {
      PredictSpec spec{.input = Rows("data/*.csv", 5)};
      spec.input.source.shard = plan->GetShard(part);
      spec.input.source.first_number = plan->GetFirstNumber(part);
      spec.input.source.may_be_empty = true;
      const std::string csv = Predict(spec);
      EXPECT_EQ(csv.substr(0, csv.find('\n')), whole.substr(0, whole.find('\n')));
      all += WithoutHeader(csv);
    }
    EXPECT_EQ(all, whole) << processes << " processes";
  }
}

TEST_F(RowNumbersTest, AFileWithOnlyAHeaderHasNoPredictions) {
  Write("data/a.csv", "x,y\n");
  PredictSpec spec{.input = Rows("data/a.csv", 0)};
  spec.input.source.may_be_empty = true;
  PredictResult result;
  EXPECT_THAT(Numbers(Predict(spec, &result)), ElementsAre());
  EXPECT_EQ(result.examples, 0u);
}

TEST_F(RowNumbersTest, AnEvaluationCountsTheRowsThatItLeavesOut) {
  Write("data/a.csv", "x,y\n0,0\n1,7\n2,1\noops,0\n");
  EvalSpec spec = Evaluation("data/a.csv");
  spec.input.reader.batch_size = 2;
  spec.input.reader.max_bad_records = 2;
  auto rejects = RejectWriter::Create(*files_, "rejects.jsonl");
  ASSERT_TRUE(rejects.ok()) << rejects.status();
  spec.reject = [&](const data::BadRecord& record) { return (*rejects)->Add(record); };
  Progress progress(ProgressStyle::kNone, 2, clock_);
  const auto result = NewEstimator(kKeylessSpec, "model")->Evaluate(spec, progress);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 2u);
  EXPECT_EQ(result->bad_records, 2u);
  EXPECT_FALSE(files_->Stat("rejects.jsonl").ok()) << "visible before it is complete";
  ASSERT_TRUE((*rejects)->Close().ok());
  const std::string text = *io::ReadFile(*files_, "rejects.jsonl");
  EXPECT_THAT(text, HasSubstr(R"({"row":1,"where":"data/a.csv:3","error":"label 'y': )"));
  EXPECT_THAT(text, HasSubstr(R"("record":"oops,0"})"));
  spec.reject = {};
  const auto state = NewEstimator(kKeylessSpec, "model")->EvaluatePart(spec, progress);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->bad_records, 2u);
}

TEST_F(RowNumbersTest, ATrainingCountsDamagedRecordsToo) {
  formats::Field x, y;
  x.name = "x";
  x.type = formats::ValueType::kFloat;
  y.name = "y";
  y.type = formats::ValueType::kInt;
  const formats::Schema schema = {{x, y}};
  auto writer = formats::TfRecordWriter::Create(*files_->OpenForWrite("data/a.tfrecord"),
                                                formats::Compression::kNone);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < 8; ++i) {
    formats::Columns columns(schema);
    columns.mutable_column(0).floats.push_back(0.5f);
    columns.mutable_column(1).ints.push_back(i == 3 ? 9 : i % 2);
    columns.AddRow();
    std::string example;
    formats::ExampleEncoder(schema).Encode(columns, 0, &example);
    ASSERT_TRUE((*writer)->Write(example).ok());
  }
  ASSERT_TRUE((*writer)->Close().ok());
  std::string frames = *io::ReadFile(*files_, "data/a.tfrecord");
  frames[14] = static_cast<char>(frames[14] ^ 1);
  Write("data/a.tfrecord", frames);
  TrainSpec spec = Training("data/a.tfrecord");
  spec.input.reader.max_bad_records = 2;
  const auto result = Train("damaged", spec, kKeylessSpec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples, 3u * 6);
  EXPECT_EQ(result->bad_records, 2u) << "a damaged record and one with an invalid label";
}

TEST_F(RowNumbersTest, ARejectIsTextOrBase64) {
  auto rejects = RejectWriter::Create(*files_, "rejects.jsonl");
  ASSERT_TRUE(rejects.ok()) << rejects.status();
  ASSERT_TRUE((*rejects)
                  ->Add({.number = 3,
                         .where = "a: record at byte 9",
                         .bytes = "\xff\x01",
                         .why = absl::DataLossError("a: record at byte 9: damaged")})
                  .ok());
  ASSERT_TRUE((*rejects)->Close().ok());
  EXPECT_EQ(*io::ReadFile(*files_, "rejects.jsonl"),
            "{\"row\":3,\"where\":\"a: record at byte 9\",\"error\":\"damaged\","
            "\"record_base64\":\"/wE=\"}\n");
}

TEST_F(RowNumbersTest, AnUnfinishedRejectWriterLeavesNoFile) {
  { ASSERT_TRUE(RejectWriter::Create(*files_, "data/rejects.jsonl").ok()); }
  EXPECT_THAT(*files_->List("data"), ElementsAre());
}

}  // namespace
}  // namespace muster::train
