#include "muster/data/held_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "muster/data/source_conformance.h"
#include "muster/data/test_data.h"

namespace muster::data {
namespace {

using ::testing::HasSubstr;

TEST(HeldBackTest, TheShareIsThatOfManyNumbers) {
  for (const double share : {0.001, 0.1, 0.5, 0.9}) {
    int held_back = 0;
    constexpr int kNumbers = 200'000;
    for (uint64_t number = 0; number < kNumbers; ++number) {
      held_back += IsHeldBack(share, "part-0.csv", number) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(held_back) / kNumbers, share, 0.005);
  }
}

// A larger share has the records of a smaller one.
TEST(HeldBackTest, SharesGrow) {
  for (uint64_t number = 0; number < 1000; ++number) {
    EXPECT_LE(IsHeldBack(0.1, "a", number), IsHeldBack(0.2, "a", number)) << number;
  }
}

class HeldBackSourceTest : public RecordSourceConformance {
 protected:
  std::unique_ptr<RecordSource> OpenPart(bool is_read, Shard shard = {}, double share = 0.2) {
    SourceSpec spec = Spec(shard);
    spec.may_be_empty = true;  // the share of the file of one record
    spec.held_back = {.share = share, .is_read = is_read};
    auto source = OpenSource(*files_, spec);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  // The records of a source by their numbers, read piece by piece.
  static std::map<uint64_t, std::string> ByNumber(const RecordSource& source) {
    std::map<uint64_t, std::string> records;
    for (size_t i = 0; i < source.chunks().size(); ++i) {
      const auto stream = *source.Stream(i);
      while (const auto piece = *stream->Next()) {
        for (size_t record = 0; record < piece->records.size(); ++record) {
          EXPECT_TRUE(records.emplace(piece->Number(record), piece->records[record]).second);
          EXPECT_THAT(piece->Where(record), HasSubstr("data/"));
        }
      }
    }
    return records;
  }
};

TEST_P(HeldBackSourceTest, EachRecordIsInOnePartWithItsNumber) {
  const auto whole = ByNumber(*Open());
  auto training = ByNumber(*OpenPart(false));
  const auto held_back = ByNumber(*OpenPart(true));
  EXPECT_NEAR(static_cast<double>(held_back.size()), 0.2 * static_cast<double>(whole.size()), 150);
  training.insert(held_back.begin(), held_back.end());
  EXPECT_EQ(training, whole);
}

TEST_P(HeldBackSourceTest, AChunkHasTheRecordsOfItsPieces) {
  for (const bool is_read : {false, true}) {
    const auto source = OpenPart(is_read);
    std::vector<std::string> streamed;
    for (const auto& [number, record] : ByNumber(*source)) streamed.push_back(record);
    EXPECT_EQ(All(*source), streamed);
    if (format().exact()) {
      EXPECT_EQ(source->records(), streamed.size());
    }
  }
}

TEST_P(HeldBackSourceTest, ShardsHaveThePartsOfTheWhole) {
  for (const ShardBy by : {ShardBy::kFile, ShardBy::kRecord}) {
    for (const bool is_read : {false, true}) {
      std::vector<std::string> records;
      for (int index = 0; index < 3; ++index) {
        const auto shard = All(*OpenPart(is_read, {.index = index, .count = 3, .by = by}));
        records.insert(records.end(), shard.begin(), shard.end());
      }
      std::vector<std::string> whole = All(*OpenPart(is_read));
      std::ranges::sort(records);
      std::ranges::sort(whole);
      EXPECT_EQ(records, whole);
    }
  }
}

TEST_P(HeldBackSourceTest, PartsAndSharesAreOtherData) {
  std::vector<uint64_t> prints = {Open()->fingerprint()};
  for (const double share : {0.2, 0.3}) {
    for (const bool is_read : {false, true}) {
      prints.push_back(OpenPart(is_read, {}, share)->fingerprint());
    }
  }
  std::ranges::sort(prints);
  EXPECT_EQ(std::ranges::adjacent_find(prints), prints.end());
}

INSTANTIATE_TEST_SUITE_P(Formats, HeldBackSourceTest, testing::ValuesIn(AllSourceFormats()),
                         [](const auto& test) { return test.param->name(); });

class HeldBackFilesTest : public testing::Test {
 protected:
  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(HeldBackFilesTest, ABadRecordCountsInItsPart) {
  std::vector<std::string> records;
  for (int i = 0; i < 200; ++i) records.push_back("record " + std::to_string(i));
  WriteTfRecords(*files_, "a.tfrecord", records, formats::Compression::kNone,
                 [&](std::string* frames) { frames->at(frames->size() - 5) ^= 1; });
  for (const bool is_read : {false, true}) {
    uint64_t bad = 0;
    SourceSpec spec = {.patterns = {"a.tfrecord"}, .held_back = {.share = 0.5, .is_read = is_read}};
    spec.take_bad_record = [&](const BadRecord& record) {
      EXPECT_EQ(record.number, 199u);
      ++bad;
    };
    const auto source = *OpenSource(*files_, spec, 1);
    const auto chunk = *source->Read(0);
    ASSERT_TRUE(source->CountBad(0, *chunk).ok());
    EXPECT_EQ(bad, IsHeldBack(0.5, "a.tfrecord", 199) == is_read ? 1u : 0u);
    EXPECT_EQ(source->bad_records(), bad);
  }
}

TEST_F(HeldBackFilesTest, TheFoldersOfFilesDoNotMatter) {
  std::string rows = "x\n";
  for (int i = 0; i < 300; ++i) rows += std::to_string(i) + "\n";
  std::vector<std::vector<std::string>> parts;
  for (const std::string path : {"a.csv", "folder/a.csv"}) {
    ASSERT_TRUE(files_->MakeFolders("folder").ok());
    WriteText(*files_, path, rows);
    const auto source =
        *OpenSource(*files_, {.patterns = {path}, .held_back = {.share = 0.3, .is_read = true}});
    const auto chunk = *source->Read(0);
    std::vector<std::string>& part = parts.emplace_back();
    for (size_t i = 0; i < chunk->records.size(); ++i) {
      EXPECT_TRUE(IsHeldBack(0.3, "a.csv", chunk->offsets[i] - 2)) << chunk->Where(i);
      part.emplace_back(chunk->records[i]);
    }
  }
  EXPECT_EQ(parts[0], parts[1]);
}

TEST_F(HeldBackFilesTest, APartWithoutRecordsIsAnError) {
  WriteText(*files_, "a.csv", "x\n1\n2\n");
  const auto open = [&](bool is_read, double share) {
    return OpenSource(*files_,
                      {.patterns = {"a.csv"}, .held_back = {.share = share, .is_read = is_read}})
        .status();
  };
  EXPECT_THAT(open(true, 1e-9).message(), HasSubstr("of 2 records none is held back"));
  EXPECT_THAT(open(false, 1 - 1e-9).message(), HasSubstr("of 2 records all are held back"));
}

}  // namespace
}  // namespace muster::data
