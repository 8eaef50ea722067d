#include "muster/score/prediction_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/strings.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"
#include "muster/score/prediction_rows.h"

namespace muster::score {
namespace {

class PredictionWriterTest : public testing::Test {
 protected:
  PredictionWriterTest() : files_(io::NewMemoryFileSystem()) {}

  void WriteAll(const PredictionWriter::Options& options, std::vector<std::string> keys,
                const engine::Predictor& predictor, const std::vector<float>& logits) {
    auto writer = PredictionWriter::Create(*files_, options, predictor);
    ASSERT_TRUE(writer.ok()) << writer.status();
    engine::Predictions predictions;
    predictor.Predict(logits, &predictions);
    ASSERT_TRUE((*writer)->Write(keys, predictions).ok());
    EXPECT_FALSE(files_->Stat(options.path).ok()) << "visible before it is whole";
    ASSERT_TRUE((*writer)->Close().ok());
  }
  // Writes a binary head's predictions for two rows.
  void WriteBinary(const PredictionWriter::Options& options, std::vector<std::string> keys,
                   std::vector<std::string> classes) {
    WriteAll(options, std::move(keys), engine::Predictor({}, std::move(classes)), {0.0f, 2.5f});
  }
  std::map<std::string, std::vector<std::string>> SecondExample(const std::string& path) {
    auto file = files_->OpenForRead(path);
    auto reader = formats::TfRecordReader::Open(std::move(*file), formats::Compression::kNone);
    std::string_view record;
    EXPECT_TRUE((*reader)->Next(&record).value());
    EXPECT_TRUE((*reader)->Next(&record).value());
    std::map<std::string, std::vector<std::string>> values;
    const auto features = formats::DescribeExample(record).value();
    for (const auto& feature : features) values[feature.name] = feature.values;
    return values;
  }

  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(PredictionWriterTest, Csv) {
  WriteBinary({.path = "p.csv", .format = PredictionFormat::kCsv, .key = "name"}, {"x", "y \"z\""},
              {"<=50K", "a,b"});
  EXPECT_EQ(io::ReadFile(*files_, "p.csv").value(),
            "name,logits,logistic,class_ids,classes\n"
            "x,0,0.5,0,<=50K\n"
            "\"y \"\"z\"\"\",2.5,0.9241418,1,\"a,b\"\n");
}

TEST_F(PredictionWriterTest, JsonLinesNumberRowsWithoutAKey) {
  WriteBinary({.path = "p.jsonl", .format = PredictionFormat::kJsonLines, .key = ""}, {}, {});
  EXPECT_EQ(io::ReadFile(*files_, "p.jsonl").value(),
            "{\"row\":0,\"logits\":[0],\"logistic\":[0.5],\"probabilities\":[0.5,0.5],"
            "\"class_ids\":[0],\"classes\":[\"0\"]}\n"
            "{\"row\":1,\"logits\":[2.5],\"logistic\":[0.9241418],"
            "\"probabilities\":[0.075858176,0.9241418],\"class_ids\":[1],\"classes\":[\"1\"]}\n");
}

TEST_F(PredictionWriterTest, TfRecord) {
  WriteBinary({.path = "p.tfrecord",
               .format = PredictionFormat::kTfRecord,
               .key = "id",
               .numeric_key = true},
              {"70", "-5"}, {});
  auto values = SecondExample("p.tfrecord");
  EXPECT_THAT(values["id"], testing::ElementsAre("-5"));
  EXPECT_THAT(values["class_ids"], testing::ElementsAre("1"));
  EXPECT_EQ(values["probabilities"].size(), 2u);
}

TEST_F(PredictionWriterTest, MultiClass) {
  const engine::Predictor predictor({.kind = "multi_class", .classes = 3},
                                    {"red", "green", "blue"});
  const std::vector<float> logits = {0, 0, 0, -200, 0, -200};
  WriteAll({.path = "p.csv", .format = PredictionFormat::kCsv, .key = "id"}, {"a", "b"}, predictor,
           logits);
  EXPECT_EQ(io::ReadFile(*files_, "p.csv").value(),
            "id,logits_0,logits_1,logits_2,probabilities_0,probabilities_1,probabilities_2,"
            "class_ids,classes\n"
            "a,0,0,0,0.33333334,0.33333334,0.33333334,0,red\n"
            "b,-200,0,-200,0,1,0,1,green\n");
  WriteAll({.path = "p.tfrecord", .format = PredictionFormat::kTfRecord, .key = "id"}, {"a", "b"},
           predictor, logits);
  auto values = SecondExample("p.tfrecord");
  EXPECT_THAT(values["logits"], testing::ElementsAre("-200", "0", "-200"));
  EXPECT_EQ(values["probabilities"].size(), 3u);
  EXPECT_THAT(values["class_ids"], testing::ElementsAre("1"));
  EXPECT_THAT(values["classes"], testing::ElementsAre("green"));
}

TEST_F(PredictionWriterTest, MultiLabelAndRegression) {
  WriteAll({.path = "l.jsonl", .format = PredictionFormat::kJsonLines, .key = ""}, {},
           engine::Predictor({.kind = "multi_label", .classes = 2}, {}), {0, 2.5f});
  EXPECT_EQ(io::ReadFile(*files_, "l.jsonl").value(),
            "{\"row\":0,\"logits\":[0,2.5],\"probabilities\":[0.5,0.9241418]}\n");
  WriteAll({.path = "r.csv", .format = PredictionFormat::kCsv, .key = ""}, {},
           engine::Predictor({.kind = "regression"}, {}), {0.25f, -2});
  EXPECT_EQ(io::ReadFile(*files_, "r.csv").value(), "row,predictions\n0,0.25\n1,-2\n");
  WriteAll({.path = "p.jsonl", .format = PredictionFormat::kJsonLines, .key = ""}, {},
           engine::Predictor({.kind = "regression", .loss = "poisson"}, {}), {0, 1});
  EXPECT_EQ(io::ReadFile(*files_, "p.jsonl").value(),
            "{\"row\":0,\"predictions\":[1],\"logits\":[0]}\n"
            "{\"row\":1,\"predictions\":[2.7182817],\"logits\":[1]}\n");
}

TEST_F(PredictionWriterTest, AnUnfinishedFileIsRemoved) {
  {
    auto writer = PredictionWriter::Create(
        *files_, {.path = "p.csv", .format = PredictionFormat::kCsv, .key = "id"},
        engine::Predictor({}, {}));
    ASSERT_TRUE(writer.ok());
  }
  EXPECT_THAT(files_->List(".").value_or(std::vector<std::string>()), testing::IsEmpty());
}

TEST_F(PredictionWriterTest, FormatByName) {
  EXPECT_EQ(FormatFor("a.jsonl").value(), PredictionFormat::kJsonLines);
  EXPECT_EQ(FormatFor("a.tfrecord").value(), PredictionFormat::kTfRecord);
  EXPECT_TRUE(absl::IsInvalidArgument(FormatFor("a.parquet").status()));
}

TEST_F(PredictionWriterTest, ValuesAreTheRowsOfFiles) {
  const engine::Predictor predictor({}, {});
  engine::Predictions predictions;
  predictor.Predict(std::vector<float>{0.0f, 2.5f}, &predictions);
  const std::vector<std::string> keys = {"x", "y,z"};
  for (const auto format : {PredictionFormat::kCsv, PredictionFormat::kJsonLines}) {
    const PredictionWriter::Options options = {.path = "p", .format = format, .key = "name"};
    const auto values = PredictionValues::Create(options, predictor);
    ASSERT_TRUE(values.ok()) << values.status();
    WriteBinary(options, keys, {});
    std::string text = io::ReadFile(*files_, "p").value();
    if (format == PredictionFormat::kCsv) text.erase(0, text.find('\n') + 1);
    for (int time = 0; time < 2; ++time) {
      const auto rows = (*values)->Encode(keys, predictions);
      ASSERT_TRUE(rows.ok()) << rows.status();
      ASSERT_EQ(rows->size(), 2);
      EXPECT_EQ(StrCat((*rows)[0], "\n", (*rows)[1], "\n"), text);
    }
    ASSERT_TRUE(files_->Remove("p").ok());
  }
  const auto examples = PredictionValues::Create(
      {.path = "", .format = PredictionFormat::kTfRecord, .key = "name"}, predictor);
  const auto rows = (*examples)->Encode(keys, predictions);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(formats::DescribeExample((*rows)[1]).value().front().name, "class_ids");
  EXPECT_TRUE(absl::IsInvalidArgument(
      PredictionValues::Create({.path = "", .format = PredictionFormat::kBatches, .key = "name"},
                               predictor)
          .status()));
}

}  // namespace
}  // namespace muster::score
