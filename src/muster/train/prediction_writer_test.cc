#include "muster/train/prediction_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

class PredictionWriterTest : public testing::Test {
 protected:
  PredictionWriterTest() : files_(io::NewMemoryFileSystem()) {}

  void WriteAll(const PredictionWriter::Options& options, std::vector<std::string> keys) {
    auto writer = PredictionWriter::Create(*files_, options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const std::vector<float> logits = {0.0f, 2.5f};
    ASSERT_TRUE((*writer)->Write({keys, logits}).ok());
    EXPECT_FALSE(files_->Stat(options.path).ok()) << "visible before it is whole";
    ASSERT_TRUE((*writer)->Close().ok());
  }

  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(PredictionWriterTest, Csv) {
  WriteAll({.path = "p.csv",
            .format = PredictionFormat::kCsv,
            .key = "name",
            .numeric_key = false,
            .classes = {"<=50K", "a,b"}},
           {"x", "y \"z\""});
  EXPECT_EQ(io::ReadFile(*files_, "p.csv").value(),
            "name,logits,logistic,class_ids,classes\n"
            "x,0,0.5,0,<=50K\n"
            "\"y \"\"z\"\"\",2.5,0.9241418,1,\"a,b\"\n");
}

TEST_F(PredictionWriterTest, JsonLinesNumberRowsWithoutAKey) {
  WriteAll({.path = "p.jsonl",
            .format = PredictionFormat::kJsonLines,
            .key = "",
            .numeric_key = false,
            .classes = {"0", "1"}},
           {});
  EXPECT_EQ(io::ReadFile(*files_, "p.jsonl").value(),
            "{\"row\":0,\"logits\":[0],\"logistic\":[0.5],\"probabilities\":[0.5,0.5],"
            "\"class_ids\":[0],\"classes\":[\"0\"]}\n"
            "{\"row\":1,\"logits\":[2.5],\"logistic\":[0.9241418],"
            "\"probabilities\":[0.075858176,0.9241418],\"class_ids\":[1],\"classes\":[\"1\"]}\n");
}

TEST_F(PredictionWriterTest, TfRecord) {
  WriteAll({.path = "p.tfrecord",
            .format = PredictionFormat::kTfRecord,
            .key = "id",
            .numeric_key = true,
            .classes = {"0", "1"}},
           {"70", "-5"});
  auto file = files_->OpenForRead("p.tfrecord");
  ASSERT_TRUE(file.ok());
  auto reader = formats::TfRecordReader::Open(std::move(*file), formats::Compression::kNone);
  ASSERT_TRUE(reader.ok());
  std::string_view record;
  ASSERT_TRUE((*reader)->Next(&record).value());
  ASSERT_TRUE((*reader)->Next(&record).value());
  const auto features = formats::DescribeExample(record);
  ASSERT_TRUE(features.ok());
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& feature : *features) values[feature.name] = feature.values;
  EXPECT_THAT(values["id"], testing::ElementsAre("-5"));
  EXPECT_THAT(values["class_ids"], testing::ElementsAre("1"));
  EXPECT_EQ(values["probabilities"].size(), 2u);
}

TEST_F(PredictionWriterTest, AnUnfinishedFileIsRemoved) {
  {
    auto writer = PredictionWriter::Create(*files_, {.path = "p.csv",
                                                     .format = PredictionFormat::kCsv,
                                                     .key = "id",
                                                     .numeric_key = false,
                                                     .classes = {"0", "1"}});
    ASSERT_TRUE(writer.ok());
  }
  EXPECT_THAT(files_->List(".").value_or(std::vector<std::string>()), testing::IsEmpty());
}

TEST_F(PredictionWriterTest, FormatByName) {
  EXPECT_EQ(FormatFor("a.jsonl").value(), PredictionFormat::kJsonLines);
  EXPECT_EQ(FormatFor("a.tfrecord").value(), PredictionFormat::kTfRecord);
  EXPECT_TRUE(absl::IsInvalidArgument(FormatFor("a.parquet").status()));
}

}  // namespace
}  // namespace muster::train
