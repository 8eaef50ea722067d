// Tensors that are partitioned by rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/base/crc32c.h"
#include "muster/formats/bundle_test_util.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(BundleTest, SliceKeysAreTensorFlows) {
  // Of OrderedCode: 0, the name, 2 dimensions, and start and length of each.
  EXPECT_EQ(GetSliceKey("a", {{.start = 0, .length = 5}, {}}),
            std::string("\0a\0\1\1\2\x80\x85\x80\x7f", 10));
  EXPECT_EQ(GetSliceKey("", {{.start = 64, .length = 8191}, {.start = 8192, .length = 1 << 20}}),
            std::string("\0\0\1\1\2\xc0\x40\xdf\xff\xe0\x20\x00\xf0\x10\x00\x00", 16));
}

// Four rows of two floats, which two other processes have written.
class PartitionedTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, "one", "row0row0row3row3").ok());
    ASSERT_TRUE(io::WriteFileAtomically(*files_, "two", "row1row1row2row2").ok());
  }
  absl::Status Write(std::vector<SavedRows> rows) {
    MUSTER_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(*files_, "b"));
    MUSTER_RETURN_IF_ERROR(writer->Add("step", DataType::kInt64, {}, "12345678"));
    EXPECT_EQ(writer->AddFile("one"), 1);
    EXPECT_EQ(writer->AddFile("two"), 2);
    const std::vector<int64_t> shape = {4, 2};
    MUSTER_RETURN_IF_ERROR(writer->AddRows("t", DataType::kFloat, shape, rows));
    return writer->Finish();
  }
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  const std::vector<SavedRows> rows_ = {{1, 0, 1, 0, Crc32c("row0row0")},
                                        {1, 3, 1, 8, Crc32c("row3row3")},
                                        {2, 1, 2, 0, Crc32c("row1row1row2row2")}};
};

// A table that grows has no rows at first.
TEST_F(PartitionedTest, ATensorWithoutElementsHasNoRows) {
  const auto writer = BundleWriter::Create(*files_, "b").value();
  writer->AddFile("one");
  const std::vector<int64_t> none = {0, 2}, some = {1, 2};
  ASSERT_TRUE(writer->AddRows("none", DataType::kFloat, none, {}).ok());
  EXPECT_FALSE(writer->AddRows("some", DataType::kFloat, some, {}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = BundleReader::Open(*files_, "b").value();
  EXPECT_EQ(reader->tensors().at("none").shape, none);
  EXPECT_EQ(ReadTensorBytes(*reader, "none").value(), "");
}

TEST_F(PartitionedTest, RowsOfSeveralFilesAreOneTensor) {
  ASSERT_TRUE(Write(rows_).ok());
  EXPECT_THAT(*files_->List("."),
              UnorderedElementsAre("b.index", "b.data-00000-of-00003", "b.data-00001-of-00003",
                                   "b.data-00002-of-00003"));
  const auto reader = BundleReader::Open(*files_, "b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->tensors().at("t").bytes, 32u);
  EXPECT_EQ(ReadTensorBytes(**reader, "t").value(), "row0row0row1row1row2row2row3row3");
  EXPECT_TRUE((*reader)->Verify("t").ok());
  std::string some;
  ASSERT_TRUE((*reader)
                  ->ReadPieces(
                      "t", [](int64_t first, int64_t) { return first > 0; },
                      [&](uint64_t offset, std::span<const char> piece) {
                        some +=
                            StrCat(offset, ":", std::string_view(piece.data(), piece.size()), " ");
                        return absl::OkStatus();
                      })
                  .ok());
  EXPECT_EQ(some, "8:row1row1row2row2 24:row3row3 ");
}

TEST_F(PartitionedTest, AnotherSaveOfTheSameNameHasOtherFiles) {
  ASSERT_TRUE(Write(rows_).ok());
  SetUp();
  ASSERT_TRUE(Write(rows_).ok());
  EXPECT_THAT(*files_->List("."),
              UnorderedElementsAre("b.index", "b.data-00000-of-00004", "b.data-00001-of-00004",
                                   "b.data-00002-of-00004", "b.data-00003-of-00004"));
  EXPECT_EQ(ReadTensorBytes(**BundleReader::Open(*files_, "b"), "t").value().size(), 32u);
}

TEST_F(PartitionedTest, RowsThatAreMissingOrDoubleAreRefusedAndTheFilesRemoved) {
  std::vector<SavedRows> without = {rows_[0], rows_[2]};
  EXPECT_TRUE(absl::IsInvalidArgument(Write(without)));
  EXPECT_THAT(*files_->List("."), IsEmpty());
  SetUp();
  std::vector<SavedRows> twice = rows_;
  twice.push_back(rows_[0]);
  EXPECT_TRUE(absl::IsInvalidArgument(Write(twice)));
}

TEST_F(PartitionedTest, DamageIsNamed) {
  std::vector<SavedRows> rows = rows_;
  rows[1].crc ^= 1;
  ASSERT_TRUE(Write(rows).ok());
  auto reader = BundleReader::Open(*files_, "b");
  const absl::Status status = ReadTensorBytes(**reader, "t").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.ToString(), HasSubstr("b.data-00001-of-00003: tensor 't' at byte 8"));
  EXPECT_TRUE(absl::IsDataLoss((*reader)->Verify("t")));

  // An index that lacks a row, or has one twice.
  BundleEntry part{.shape = {1, 2}, .shard = 1, .size = 8};
  BundleEntry whole{.shape = {2, 2}};
  whole.slices = {{{.start = 0, .length = 1}, {}}, {{.start = 0, .length = 1}, {}}};
  const std::string key = GetSliceKey("t", whole.slices[0]);
  const auto open = [&] {
    WriteIndex(*files_, {.shards = 3},
               {{key, SerializeBundleEntry(part)}, {"t", SerializeBundleEntry(whole)}});
    return BundleReader::Open(*files_, "b").status();
  };
  EXPECT_TRUE(absl::IsDataLoss(open()));
  whole.slices.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(open()));
  whole.shape = {1, 2};
  EXPECT_TRUE(open().ok());
  part.offset = 100;
  EXPECT_TRUE(absl::IsDataLoss(open()));
}

}  // namespace
}  // namespace muster::formats
