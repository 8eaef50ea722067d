#include "muster/data/convert_idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/data/test_data.h"
#include "muster/formats/csv_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Five images of 1 x 2 bytes, and their labels.
const std::string kImages(
    "\0\0\x08\x03\0\0\0\x05\0\0\0\x01\0\0\0\x02"
    "aabbccddee",
    26);
const std::string kLabels("\0\0\x08\x01\0\0\0\x05\x05\0\x04\xff\x09", 13);

class ConvertIdxTest : public testing::Test {
 protected:
  ConvertIdxTest() {
    WriteText(*files_, "images", kImages);
    WriteText(*files_, "labels.gz", formats::Gzip(kLabels));
    spec_.images = "images";
    spec_.labels = "labels.gz";
    spec_.output = {.folder = "out", .files = 2};
  }

  std::string Failure() {
    const auto counts = ConvertIdx(*files_, spec_);
    EXPECT_FALSE(counts.ok());
    if (const auto names = files_->List("out"); names.ok()) {
      EXPECT_THAT(*names, IsEmpty());
    }
    return std::string(counts.status().message());
  }

  // Reads the files one after the other.
  formats::Columns Read(const formats::Schema& schema) {
    const std::shared_ptr<const RecordSource> source =
        *OpenSource(*files_, {.patterns = {"out/part-*"}});
    auto reader = *BatchReader::Create(source, schema, {.batch_size = 10});
    formats::Columns columns(schema);
    EXPECT_TRUE(*reader->Next(&columns));
    return columns;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  IdxConversionSpec spec_;
};

TEST_F(ConvertIdxTest, ImagesAndLabelsAreRecords) {
  const auto counts = ConvertIdx(*files_, spec_);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->rows, 5u);
  EXPECT_GT(counts->bytes, 5 * 16u);
  formats::Schema schema;
  schema.fields.emplace_back().name = "image";
  schema.fields.emplace_back().name = "label";
  schema.fields.back().type = formats::ValueType::kInt;
  const formats::Columns columns = Read(schema);
  EXPECT_THAT(columns.column(0).strings, ElementsAre("aa", "cc", "ee", "bb", "dd"));
  EXPECT_THAT(columns.column(1).ints, ElementsAre(5, 4, 9, 0, 255));
}

TEST_F(ConvertIdxTest, ImagesWithoutLabelsMayHaveAnotherName) {
  spec_.labels.clear();
  spec_.image_feature = "label";
  spec_.output.files = 1;
  ASSERT_TRUE(ConvertIdx(*files_, spec_).ok());
  formats::Schema schema;
  schema.fields.emplace_back().name = "label";
  EXPECT_THAT(Read(schema).column(0).strings, ElementsAre("aa", "bb", "cc", "dd", "ee"));
}

TEST_F(ConvertIdxTest, RefusesImagesAndLabelsThatDoNotBelongTogether) {
  spec_.labels = "images";
  EXPECT_THAT(Failure(), AllOf(HasSubstr("images: "), HasSubstr("3 dimensions of uint8")));
  spec_.labels = "labels.gz";
  WriteText(*files_, "labels.gz", kLabels.substr(0, 7) + "\x04\x01\x01\x01\x01");
  EXPECT_THAT(Failure(), HasSubstr("labels.gz has 4 labels, images 5 images"));
  WriteText(*files_, "labels.gz", std::string("\0\0\x0d\x01\0\0\0\x05", 8) + std::string(20, 'f'));
  EXPECT_THAT(Failure(), HasSubstr("of float32 is no list of labels"));
  spec_.label_feature = "image";
  EXPECT_THAT(Failure(), HasSubstr("both be the feature 'image'"));
}

TEST_F(ConvertIdxTest, BrokenFilesLeaveNoPartFile) {
  WriteText(*files_, "images", kImages.substr(0, 25));
  EXPECT_THAT(Failure(), HasSubstr("images: it is cut at byte 25, in item 4 of 5"));
  WriteText(*files_, "images", kImages);
  WriteText(*files_, "labels.gz", kLabels + "x");
  EXPECT_THAT(Failure(), HasSubstr("labels.gz: bytes follow"));
  WriteText(*files_, "labels.gz", kLabels);
  WriteText(*files_, "images", std::string("\0\0\x08\x01\0\0\0\0", 8));
  spec_.labels.clear();
  EXPECT_THAT(Failure(), HasSubstr("images: no items"));
  spec_.images = "none";
  EXPECT_THAT(Failure(), HasSubstr("none"));
}

TEST_F(ConvertIdxTest, ProgressCanStopIt) {
  const auto counts = ConvertIdx(*files_, spec_, [](const ConversionCounts& so_far) {
    return so_far.rows == 5 ? absl::CancelledError("stopped") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(counts.status())) << counts.status();
  EXPECT_THAT(*files_->List("out"), IsEmpty());
}

}  // namespace
}  // namespace muster::data
