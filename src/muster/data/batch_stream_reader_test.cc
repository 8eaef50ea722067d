#include "muster/data/batch_stream_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/batch_stream.h"
#include "muster/formats/batch_stream_test_util.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using formats::TestFrame;
using formats::TestNumbers;
using formats::ValueType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

formats::Schema NumbersSchema() {
  formats::Field field;
  field.name = "n";
  field.type = ValueType::kInt;
  return {{field}};
}

std::string NumbersFrame(const std::vector<int64_t>& numbers) {
  return TestFrame(static_cast<uint32_t>(numbers.size()), TestNumbers(numbers));
}

class BatchStreamReaderTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<BatchReader>> Open(const std::string& frames,
                                                    uint64_t max_bad_records = 0) {
    const std::string start = formats::TestStreamStart({{"n", ValueType::kInt}});
    EXPECT_TRUE(io::WriteFileAtomically(*files_, "in.batches", start + frames).ok());
    ReaderSpec spec;
    spec.max_bad_records = max_bad_records;
    return OpenBatchStream(*files_, {.patterns = {"in.batches"}}, NumbersSchema(), spec);
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  formats::Columns columns_{NumbersSchema()};
};

TEST_F(BatchStreamReaderTest, BatchesKeepTheirSizesAndOrder) {
  auto reader =
      Open(NumbersFrame({1, 2, 3}) + NumbersFrame({4}) + NumbersFrame({5, 6}) + TestFrame(0, ""))
          .value();
  ASSERT_TRUE(reader->Next(&columns_).value());
  EXPECT_THAT(columns_.column(0).ints, ElementsAre(1, 2, 3));
  ASSERT_TRUE(reader->Next(&columns_).value());
  EXPECT_THAT(columns_.column(0).ints, ElementsAre(4));
  EXPECT_EQ(reader->position().emitted, 4u);
  EXPECT_EQ(reader->Origin(0), "in.batches: batch 2, row 1");
  ASSERT_TRUE(reader->Next(&columns_).value());
  EXPECT_THAT(columns_.column(0).ints, ElementsAre(5, 6));
  EXPECT_FALSE(reader->Next(&columns_).value());
  EXPECT_FALSE(reader->Next(&columns_).value());
}

TEST_F(BatchStreamReaderTest, AStreamWithoutItsEndMarkerIsDataLossAfterItsBatches) {
  const std::string frames = NumbersFrame({1, 2}) + NumbersFrame({3, 4}) + TestFrame(0, "");
  for (size_t size = NumbersFrame({1, 2}).size(); size < frames.size(); ++size) {
    auto reader = Open(frames.substr(0, size)).value();
    ASSERT_TRUE(reader->Next(&columns_).value());
    auto more = reader->Next(&columns_);
    if (more.ok()) more = reader->Next(&columns_);
    ASSERT_TRUE(absl::IsDataLoss(more.status())) << size << ": " << more.status();
    EXPECT_THAT(std::string(more.status().message()), HasSubstr("in.batches: batch "));
    EXPECT_THAT(std::string(more.status().message()), HasSubstr("ends before its end marker"));
  }
}

TEST_F(BatchStreamReaderTest, AFalseLengthTakesNoMemory) {
  std::string frame = TestFrame(1, "12345678");
  const uint64_t lie = formats::kMaxFrameBytes;
  std::memcpy(frame.data() + 8, &lie, sizeof lie);
  auto reader = Open(frame).value();
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(&columns_).status()));
}

TEST_F(BatchStreamReaderTest, RejectedRowsAreCountedAndNumberedAsInTheStream) {
  auto reader = Open(NumbersFrame({1, 2, 3}) + TestFrame(0, ""), /*max_bad_records=*/1).value();
  ASSERT_TRUE(reader->Next(&columns_).value());
  const absl::Status why = absl::InvalidArgumentError("too small");
  EXPECT_TRUE(reader->RejectRow(0, why, &columns_).ok());
  EXPECT_THAT(columns_.column(0).ints, ElementsAre(2, 3));
  EXPECT_EQ(reader->position().bad_records, 1u);
  EXPECT_EQ(reader->Number(1), 2u) << "a row that is left out keeps its number";
  EXPECT_TRUE(reader->Refill(&columns_).value());
  EXPECT_EQ(columns_.rows(), 2) << "a batch must not be filled up";
  EXPECT_EQ(reader->RejectRow(1, why, &columns_).message(),
            "in.batches: batch 1, row 3: too small (1 bad record before it was left out: "
            "--max-bad-records allows no more)");
}

TEST_F(BatchStreamReaderTest, ABatchOfBadRowsIsSkipped) {
  auto reader = Open(NumbersFrame({1}) + NumbersFrame({2}) + TestFrame(0, ""), 1).value();
  ASSERT_TRUE(reader->Next(&columns_).value());
  ASSERT_TRUE(reader->RejectRow(0, absl::InvalidArgumentError("too small"), &columns_).ok());
  EXPECT_FALSE(reader->Refill(&columns_).value());
  ASSERT_TRUE(reader->Next(&columns_).value());
  EXPECT_THAT(columns_.column(0).ints, ElementsAre(2));
  EXPECT_EQ(reader->bad_rows(), 1u);
}

TEST_F(BatchStreamReaderTest, AStreamIsRecognisedByItsName) {
  EXPECT_TRUE(IsBatchStream({.patterns = {"-"}}));
  EXPECT_TRUE(IsBatchStream({.patterns = {"a/b.batches"}}));
  EXPECT_FALSE(IsBatchStream({.patterns = {"a/b.csv", "-.csv"}}));
  const auto several = OpenBatchStream(*files_, {.patterns = {"-", "b.csv"}}, NumbersSchema(), {});
  EXPECT_TRUE(absl::IsInvalidArgument(several.status()));
}

}  // namespace
}  // namespace muster::data
