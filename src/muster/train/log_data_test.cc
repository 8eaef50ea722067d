// Data that is not in files: a model that was trained on a log with gaps in its offsets has the
// same bytes as one that was trained on the same records in files.
#include "muster/data/memory_log.h"
#include "muster/data/source_set.h"
#include "muster/formats/csv.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/score/part_plan.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::Not;

constexpr int kPartitions = 3;
constexpr int kRecords = 2100;      // in each partition and in each file
constexpr int kFillerBytes = 1000;  // so that each partition has three chunks

// The spec's fields and a filler that no column reads.
formats::Schema RecordSchema() {
  const auto field = [](const char* name, formats::ValueType type) {
    formats::Field made;
    made.name = name;
    made.type = type;
    return made;
  };
  return {{field("id", formats::ValueType::kInt), field("x", formats::ValueType::kFloat),
           field("color", formats::ValueType::kString), field("y", formats::ValueType::kInt),
           field("filler", formats::ValueType::kString)}};
}

class LogDataTest : public TrainingTest {
 protected:
  LogDataTest() : log_(std::make_shared<data::MemoryLog>()) {
    const std::vector<std::string> records = Records(kPartitions * kRecords);
    EXPECT_TRUE(files_->MakeFolders("data").ok());
    for (int partition = 0; partition < kPartitions; ++partition) {
      const std::string name = StrCat("data/", partition);
      auto writer = *formats::TfRecordWriter::Create(*files_->OpenForWrite(name),
                                                     formats::Compression::kNone);
      for (int i = 0; i < kRecords; ++i) {
        const std::string& record = records[static_cast<size_t>(partition * kRecords + i)];
        EXPECT_TRUE(writer->Write(record).ok());
        log_->Append(name, record);
        if (i % 5 == partition) log_->Skip(name, static_cast<uint64_t>(i % 3));
        if (i == 100) log_->Skip(name, 1000);
      }
      EXPECT_TRUE(writer->Close().ok());
    }
  }

  static std::vector<std::string> Records(int count) {
    const formats::Schema schema = RecordSchema();
    const formats::ExampleEncoder encoder(schema);
    const auto decoder = *formats::NewCsvDecoder(schema, {"id", "x", "color", "y", "filler"});
    const std::string filler(kFillerBytes, 'f');
    const std::string csv = Csv(count);
    std::vector<std::string> records;
    formats::Columns columns(schema);
    for (size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1) {
      const std::string row = StrCat(csv.substr(at, csv.find('\n', at) - at), ",", filler);
      columns.Clear();
      EXPECT_TRUE(decoder->Decode(row, &columns).ok());
      encoder.Encode(columns, 0, &records.emplace_back());
    }
    return records;
  }

  TrainSpec OnFiles() const {
    TrainSpec spec = Training("data/*");
    spec.input.reader.batch_size = 64;
    spec.input.reader.open_chunks = 4;
    spec.input.reader.epochs = 2;
    return spec;
  }
  TrainSpec OnLog() const {
    TrainSpec spec = OnFiles();
    spec.input.source.patterns = {"log://data"};
    spec.input.source.schemes = {{data::MemoryLog::kScheme, log_}};
    return spec;
  }

  const std::shared_ptr<data::MemoryLog> log_;
};

TEST_F(LogDataTest, AModelHasTheBytesOfOneTrainedOnFiles) {
  for (const bool shuffle : {false, true}) {
    TrainSpec on_files = OnFiles(), on_log = OnLog();
    on_files.input.reader.shuffle = on_log.input.reader.shuffle = shuffle;
    const auto files = Train(StrCat("files", shuffle), on_files);
    ASSERT_TRUE(files.ok()) << files.status();
    const auto log = Train(StrCat("log", shuffle), on_log);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->step, files->step);
    EXPECT_EQ(log->examples, uint64_t{2} * kPartitions * kRecords) << "each record in each epoch";
    EXPECT_EQ(log->loss, files->loss);
    EXPECT_EQ(Weights(StrCat("log", shuffle)), Weights(StrCat("files", shuffle)));
  }
  EXPECT_THAT(Weights("log0"), Not(testing::Eq(Weights("log1"))));
}

TEST_F(LogDataTest, ATrainingContinuesInTheMiddleOfTheLog) {
  ASSERT_TRUE(Train("whole", OnLog()).ok());
  TrainSpec cut = OnLog();
  for (const int64_t step : {7, 60, 130}) {
    cut.max_steps = step;
    const auto part = Train("resumed", cut);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->step, step);
  }
  const auto rest = Train("resumed", OnLog());
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->first_step, 130);
  EXPECT_EQ(Weights("resumed"), Weights("whole"));
}

TEST_F(LogDataTest, ARecreatedLogIsOtherData) {
  TrainSpec cut = OnLog();
  cut.max_steps = 7;
  ASSERT_TRUE(Train("model", cut).ok());
  log_->set_identity("made again");
  const auto other = Train("model", OnLog());
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition) << other.status();
  EXPECT_THAT(ToStd(other.status().message()), testing::HasSubstr("belongs to other data"));
}

TEST_F(LogDataTest, ShardsByRecordHaveEachRecordOnce) {
  uint64_t examples = 0;
  for (int index = 0; index < 4; ++index) {
    TrainSpec spec = OnLog();
    spec.input.source.shard = {.index = index, .count = 4, .by = data::ShardBy::kRecord};
    spec.input.reader.epochs = 1;
    const auto trained = Train(StrCat("share", index), spec);
    ASSERT_TRUE(trained.ok()) << trained.status();
    examples += trained->examples;
  }
  EXPECT_EQ(examples, uint64_t{kPartitions} * kRecords);
}

// Row numbers of consecutive parts do not overlap, although a log does not count records.
TEST_F(LogDataTest, APartPlanHasPartitionsAndRanges) {
  TrainSpec spec = OnLog();
  spec.max_steps = 1;
  ASSERT_TRUE(Train("model", spec).ok());
  score::PartPlanOptions options = {.patterns = spec.input.source.patterns,
                                    .schemes = spec.input.source.schemes,
                                    .model_dir = "model",
                                    .suffix = ".csv",
                                    .processes = kPartitions,
                                    .numbered = true};
  const auto wanted = score::MakePartPlan(*files_, options);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_FALSE(wanted->by_record);
  EXPECT_EQ(wanted->data[1].path, "data/1");
  EXPECT_EQ(wanted->data[1].identity, "first");
  ASSERT_TRUE(score::OpenPartPlan(*files_, "out", *wanted, spec.input.source).ok());
  const auto plan = score::OpenPartPlan(*files_, "out", *wanted, spec.input.source);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->GetFirstNumber(1), static_cast<uint64_t>(plan->data[0].bytes));
  EXPECT_GT(plan->data[0].bytes, kRecords);
  options.batch_size = 16;
  EXPECT_TRUE(score::MakePartPlan(*files_, options)->by_record) << "a partition can be cut";
  log_->set_identity("made again");
  options.batch_size = 0;
  const auto changed = score::MakePartPlan(*files_, options);
  EXPECT_THAT(ToStd(score::OpenPartPlan(*files_, "out", *changed).status().message()),
              testing::HasSubstr("data/0 has changed"));
}

}  // namespace
}  // namespace muster::train
