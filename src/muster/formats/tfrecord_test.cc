#include "muster/formats/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "muster/base/crc32c.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Compression kAllCompressions[] = {Compression::kNone, Compression::kGzip,
                                            Compression::kZlib};

std::string Frame(std::string_view data) {
  const uint64_t length = data.size();
  std::string frame(reinterpret_cast<const char*>(&length), 8);
  const uint32_t length_crc = MaskedCrc32c(frame);
  frame.append(reinterpret_cast<const char*>(&length_crc), 4).append(data);
  const uint32_t data_crc = MaskedCrc32c(data);
  return frame.append(reinterpret_cast<const char*>(&data_crc), 4);
}

// The result of reading a file of given bytes: its records up to the first error.
struct ReadResult {
  std::vector<std::string> records;
  absl::Status status;
  uint64_t offset = 0;
};

class TfRecordTest : public testing::Test {
 protected:
  void Write(std::string_view bytes) {
    auto file = files_->OpenForWrite("f").value();
    ASSERT_TRUE(file->Append(bytes).ok());
    ASSERT_TRUE(file->Close().ok());
  }

  std::string Written(const std::vector<std::string>& records, Compression compression) {
    auto writer = TfRecordWriter::Create(files_->OpenForWrite("f").value(), compression).value();
    uint64_t offset = 0;
    for (const std::string& record : records) {
      EXPECT_EQ(writer->offset(), offset);
      EXPECT_TRUE(writer->Write(record).ok());
      offset += record.size() + kTfRecordOverhead;
    }
    EXPECT_TRUE(writer->Close().ok());
    return io::ReadFile(*files_, "f").value();
  }

  std::unique_ptr<TfRecordReader> Open(Compression compression, uint64_t offset = 0) {
    return TfRecordReader::Open(files_->OpenForRead("f").value(), compression, offset).value();
  }

  ReadResult ReadAll(Compression compression, uint64_t offset = 0) {
    ReadResult result;
    auto reader = Open(compression, offset);
    while (true) {
      result.offset = reader->offset();
      std::string_view record;
      absl::StatusOr<bool> more = reader->Next(&record);
      result.status = more.status();
      if (!more.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(more.status())) << more.status();
        EXPECT_THAT(std::string(more.status().message()),
                    HasSubstr(StrCat("f: record at byte ", result.offset, ": ")));
        if (!reader->SkippableError()) {
          EXPECT_EQ(reader->Next(&record).status(), more.status())
              << "a failed reader must fail again";
        }
        return result;
      }
      if (!*more) {
        EXPECT_FALSE(reader->Next(&record).value())
            << "after the end there must be no more records";
        return result;
      }
      result.records.emplace_back(record);
    }
  }

  ReadResult ReadBytes(std::string_view bytes, Compression compression) {
    Write(bytes);
    return ReadAll(compression);
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

// Written by tf.io.TFRecordWriter("f").write(b"abc"), TensorFlow 2.15.
TEST_F(TfRecordTest, KnownBytes) {
  const std::string known(
      "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
      "abc"
      "\x6e\x57\xf1\x21",
      19);
  EXPECT_EQ(Written({"abc"}, Compression::kNone), known);
  EXPECT_THAT(ReadBytes(known, Compression::kNone).records, ElementsAre("abc"));
}

TEST_F(TfRecordTest, RoundTripOfAllSizes) {
  std::vector<std::string> records;
  for (const size_t size : {0, 1, 7, 8, 1000, 262'143, 262'144, 300'000, 3'000'000, 5, 0}) {
    std::string record(size, '\0');
    for (size_t i = 0; i < size; ++i) record[i] = static_cast<char>(i * 7 + i / 251);
    records.push_back(record);
  }
  for (int i = 0; i < 5000; ++i) records.push_back(StrCat("small record ", i));
  for (const Compression compression : kAllCompressions) {
    Written(records, compression);
    EXPECT_EQ(DetectCompression(*files_->OpenForRead("f").value()).value(), compression);
    const ReadResult result = ReadAll(compression);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(result.records == records) << CompressionName(compression);
  }
}

TEST_F(TfRecordTest, StartsAtAnOffset) {
  const std::vector<std::string> records = {"first", "second one", "third"};
  for (const Compression compression : kAllCompressions) {
    Written(records, compression);
    const uint64_t second = 5 + kTfRecordOverhead;
    EXPECT_THAT(ReadAll(compression, second).records, ElementsAre("second one", "third"));
    const uint64_t end = second + 10 + 5 + 2 * kTfRecordOverhead;
    const ReadResult at_end = ReadAll(compression, end);
    EXPECT_TRUE(at_end.status.ok() && at_end.records.empty());
    EXPECT_EQ(at_end.offset, end);
  }
}

TEST_F(TfRecordTest, NoRecords) {
  for (const Compression compression : kAllCompressions) {
    const std::string bytes = Written({}, compression);
    EXPECT_EQ(bytes.empty(), compression == Compression::kNone);
    EXPECT_EQ(DetectCompression(*files_->OpenForRead("f").value()).value(), compression);
    const ReadResult result = ReadAll(compression);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(result.records.empty());
  }
}

// The lengths' little-endian bytes are a ZLIB and a GZIP header.
TEST_F(TfRecordTest, APlainFileThatBeginsLikeACompressedOneIsPlain) {
  for (const size_t size : {size_t{0x9c78}, size_t{0x088b1f}}) {
    Written({std::string(size, 'x')}, Compression::kNone);
    EXPECT_EQ(DetectCompression(*files_->OpenForRead("f").value()).value(), Compression::kNone);
  }
}

TEST_F(TfRecordTest, AFileCutAnywhereIsAnErrorAfterItsWholeRecords) {
  const std::vector<std::string> records = {"one", "", "the third record", "4"};
  for (const Compression compression : kAllCompressions) {
    const std::string whole = Written(records, compression);
    std::vector<uint64_t> ends = {0};
    for (const std::string& record : records) {
      ends.push_back(ends.back() + record.size() + kTfRecordOverhead);
    }
    for (size_t size = 0; size < whole.size(); ++size) {
      const ReadResult result = ReadBytes(whole.substr(0, size), compression);
      const bool at_record_end = std::count(ends.begin(), ends.end(), size) > 0;
      EXPECT_EQ(result.status.ok(), compression == Compression::kNone && at_record_end) << size;
      ASSERT_LE(result.records.size(), records.size());
      for (size_t i = 0; i < result.records.size(); ++i) EXPECT_EQ(result.records[i], records[i]);
      EXPECT_EQ(result.offset, ends[result.records.size()]);
      if (!result.status.ok()) {
        EXPECT_THAT(std::string(result.status.message()), HasSubstr("is cut"));
      }
    }
  }
}

TEST_F(TfRecordTest, AFlippedBitAnywhereIsFound) {
  const std::vector<std::string> records = {"one", "", "the third record", "4"};
  for (const Compression compression : kAllCompressions) {
    const std::string whole = Written(records, compression);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        const ReadResult result = ReadBytes(damaged, compression);
        // Some bits of a GZIP header (time, system, flags of compression) mean nothing.
        const bool means_nothing = compression == Compression::kGzip && i >= 3 && i < 10;
        EXPECT_TRUE(means_nothing || !result.status.ok()) << i << " bit " << bit;
        for (size_t k = 0; k < result.records.size(); ++k) EXPECT_EQ(result.records[k], records[k]);
      }
    }
  }
}

TEST_F(TfRecordTest, DamagedDataIsSkippable) {
  std::string bytes = Frame("one") + Frame("two") + Frame("three");
  bytes[Frame("one").size() + 12] ^= 1;
  Write(bytes);
  auto reader = Open(Compression::kNone);
  std::string_view record;
  EXPECT_TRUE(reader->Next(&record).value());
  EXPECT_FALSE(reader->SkippableError());
  const absl::Status status = reader->Next(&record).status();
  EXPECT_EQ(status.message(),
            "f: record at byte 19: the CRC of its 3 bytes of data is wrong: they are damaged");
  EXPECT_TRUE(reader->SkippableError());
  EXPECT_EQ(reader->offset(), 38u);
  EXPECT_TRUE(reader->Next(&record).value());
  EXPECT_FALSE(reader->SkippableError());
  EXPECT_EQ(record, "three");
  EXPECT_FALSE(reader->Next(&record).value());
}

TEST_F(TfRecordTest, ADamagedLengthIsNotSkippable) {
  std::string bytes = Frame("one") + Frame("two");
  bytes[19] ^= 1;
  Write(bytes);
  auto reader = Open(Compression::kNone);
  std::string_view record;
  EXPECT_TRUE(reader->Next(&record).value());
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(&record).status()));
  EXPECT_FALSE(reader->SkippableError());
}

std::string HeaderOfLength(uint64_t length) {
  std::string header(reinterpret_cast<const char*>(&length), 8);
  const uint32_t crc = MaskedCrc32c(header);
  return header.append(reinterpret_cast<const char*>(&crc), 4);
}

TEST_F(TfRecordTest, AnAbsurdLengthIsRefused) {
  for (const uint64_t length :
       {uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 15, kMaxRecordBytes + 1}) {
    const ReadResult result =
        ReadBytes(Frame("one") + HeaderOfLength(length) + "data", Compression::kNone);
    EXPECT_THAT(result.records, ElementsAre("one"));
    EXPECT_THAT(std::string(result.status.message()),
                HasSubstr(StrCat("record at byte 19: its length is ", length, " bytes")));
  }
}

// Counts how much memory a reader would fill, by its reads.
class CountingFile : public io::RandomAccessFile {
 public:
  CountingFile(std::string bytes, uint64_t* asked) : bytes_(std::move(bytes)), asked_(asked) {}
  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    *asked_ = std::max<uint64_t>(*asked_, size);
    if (offset >= bytes_.size()) return size_t{0};
    return bytes_.copy(buffer, size, offset);
  }
  const std::string& path() const override { return path_; }

 private:
  std::string bytes_;
  uint64_t* asked_;
  std::string path_ = "counted";
};

TEST_F(TfRecordTest, ALengthBeyondTheFileTakesNoMemory) {
  uint64_t asked = 0;
  auto reader = TfRecordReader::Open(std::make_shared<CountingFile>(
                                         HeaderOfLength(kMaxRecordBytes) + "data", &asked),
                                     Compression::kNone)
                    .value();
  std::string_view record;
  const absl::Status status = reader->Next(&record).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ends after 16 of them"));
  EXPECT_LE(asked, uint64_t{256} << 10);
}

TEST_F(TfRecordTest, ReadsLargeBlocks) {
  const std::vector<std::string> records(2000, std::string(784, 'x'));
  Written(records, Compression::kNone);
  io::FaultFileSystem counted(*files_);
  auto reader = TfRecordReader::Open(counted.OpenForRead("f").value(), Compression::kNone).value();
  std::string_view record;
  int found = 0;
  while (reader->Next(&record).value()) ++found;
  EXPECT_EQ(found, 2000);
  EXPECT_LE(counted.count(io::FileOperation::kRead), 9)
      << "1.6 MB must be read in blocks of 256 KiB";
}

TEST_F(TfRecordTest, TrailingBytesAreRefused) {
  for (const Compression compression : kAllCompressions) {
    const ReadResult result = ReadBytes(Written({"one"}, compression) + "garbage", compression);
    EXPECT_THAT(result.records, ElementsAre("one"));
    EXPECT_FALSE(result.status.ok()) << CompressionName(compression);
  }
}

TEST_F(TfRecordTest, SeveralGzipMembersAreOneStream) {
  const std::string first = Written({"one"}, Compression::kGzip);
  const std::string second = Written({"two"}, Compression::kGzip);
  const ReadResult result = ReadBytes(first + second, Compression::kGzip);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.records, ElementsAre("one", "two"));
  const std::string zlib = Written({"one"}, Compression::kZlib);
  EXPECT_FALSE(ReadBytes(zlib + zlib, Compression::kZlib).status.ok());
}

TEST_F(TfRecordTest, AFileThatIsNoTfRecordIsRefused) {
  const ReadResult result = ReadBytes("age,sex\n34,male\n", Compression::kNone);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("not a TFRecord file"));
}

TEST_F(TfRecordTest, AFailingReadIsReportedUnchanged) {
  Written({"one"}, Compression::kGzip);
  io::FaultFileSystem faulty(*files_);
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    faulty.FailNth(io::FileOperation::kRead, 1, absl::UnavailableError("the disk is gone"));
    auto reader = TfRecordReader::Open(faulty.OpenForRead("f").value(), compression).value();
    std::string_view record;
    EXPECT_TRUE(absl::IsUnavailable(reader->Next(&record).status()));
    EXPECT_TRUE(absl::IsUnavailable(reader->Next(&record).status()));
  }
}

TEST_F(TfRecordTest, AFailingWriteIsReported) {
  for (const Compression compression : kAllCompressions) {
    for (const auto operation :
         {io::FileOperation::kWrite, io::FileOperation::kSync, io::FileOperation::kClose}) {
      io::FaultFileSystem faulty(*files_);
      faulty.FailNth(operation, 1, absl::ResourceExhaustedError("full"));
      auto writer = TfRecordWriter::Create(faulty.OpenForWrite("g").value(), compression).value();
      absl::Status status = writer->Write("one");
      if (status.ok()) {
        status = writer->Close();
      } else {
        EXPECT_FALSE(writer->Close().ok());
      }
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(faulty.count(io::FileOperation::kClose), 1);
    }
  }
}

TEST_F(TfRecordTest, CloseSyncsBeforeItCloses) {
  io::FaultFileSystem files(*files_);
  auto writer = TfRecordWriter::Create(files.OpenForWrite("g").value(), Compression::kGzip).value();
  ASSERT_TRUE(writer->Write("one").ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto history = files.history();
  ASSERT_GE(history.size(), 2u);
  EXPECT_EQ(history[history.size() - 2].operation, io::FileOperation::kSync);
  EXPECT_EQ(history.back().operation, io::FileOperation::kClose);
}

TEST(ParseRecordTest, FindsRecordsInARun) {
  const std::string bytes = Frame("one") + Frame("") + Frame("three");
  std::vector<std::string> found;
  EXPECT_TRUE(ForEachRecord(bytes, "f", 1000, [&](uint64_t offset, uint64_t size) {
                found.push_back(bytes.substr(offset, size));
              }).ok());
  EXPECT_THAT(found, ElementsAre("one", "", "three"));
}

TEST(ParseRecordTest, ReportsFileAndOffset) {
  std::string bytes = Frame("one") + Frame("two");
  bytes.pop_back();
  const absl::Status status = ForEachRecord(bytes, "f", 1000, [](uint64_t, uint64_t) {});
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("f: record at byte 1019: the file is cut"));
}

TEST(ParseRecordTest, ReturnsTheFrameOfDamagedData) {
  std::string bytes = Frame("one");
  std::string_view record;
  bytes[12] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(ParseRecord(bytes, "f", 0, &record).status()));
  EXPECT_EQ(record.size(), 3u);
  bytes[0] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(ParseRecord(bytes, "f", 0, &record).status()));
  EXPECT_EQ(record.data(), nullptr);
  EXPECT_TRUE(
      absl::IsDataLoss(ParseRecord(HeaderOfLength(uint64_t{1} << 62), "f", 0, &record).status()));
  EXPECT_EQ(record.data(), nullptr);
}

}  // namespace
}  // namespace muster::formats
