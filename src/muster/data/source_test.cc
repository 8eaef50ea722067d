#include "muster/data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "muster/base/test_size.h"
#include "muster/data/file_rules.h"
#include "muster/data/memory_log.h"
#include "muster/data/source_conformance.h"
#include "muster/data/source_set.h"
#include "muster/data/test_data.h"
#include "muster/formats/sniff.h"
#include "muster/io/fault_file_system.h"

namespace muster::data {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(RecordSourceConformance, GivesEveryRecordInOrder) {
  const auto source = Open();
  EXPECT_THAT(source->files(), ElementsAre(Path("a"), Path("b"), Path("c")));
  if (format().exact()) {
    EXPECT_EQ(source->records(), all_.size());
  }
  EXPECT_EQ(All(*source), all_);
  EXPECT_EQ(source->bad_records(), 0u);
}

TEST_P(RecordSourceConformance, ItemsAreListedInTheOrderInWhichTheyAreRead) {
  const SourceSpec spec = Spec();
  const auto items = ListSources(*files_, spec);
  ASSERT_TRUE(items.ok()) << items.status();
  ASSERT_EQ(items->size(), 3u);
  const auto set = ChooseSourceSet(*files_, spec.schemes, spec.patterns);
  for (size_t i = 0; i < items->size(); ++i) {
    const SourceItem& item = (*items)[i];
    EXPECT_EQ(item.name, Open()->files()[i]);
    EXPECT_TRUE(item.name.ends_with(item.common_name)) << item.common_name;
    EXPECT_GT(item.size(), 0u);
    EXPECT_EQ(*(*set)->CanBeCut(item, {}), !format().compressed());
    EXPECT_EQ(*(*set)->CountRecords(item, {}), Open({}, {item.name})->records());
  }
  EXPECT_EQ(*ListSources(*files_, spec), *items) << "the list must be the same each time";
  EXPECT_TRUE(absl::IsNotFound(ListSources(*files_, Spec({}, {"data/z"})).status()));
}

TEST_P(RecordSourceConformance, ChunksAreOfTheAnnouncedSize) {
  const auto source = Open();
  if (format().compressed()) {
    EXPECT_EQ(source->chunks().size(), 3u);
    return;
  }
  EXPECT_GT(source->chunks().size(), 5u);
  for (const ChunkInfo& chunk : source->chunks()) {
    EXPECT_LE(chunk.end - chunk.begin, kChunkBytes + 2000);
  }
}

TEST_P(RecordSourceConformance, StreamsGiveTheSameInSmallPieces) {
  const auto source = Open();
  std::vector<std::string> streamed;
  for (size_t i = 0; i < source->chunks().size(); ++i) {
    auto stream = source->Stream(i);
    ASSERT_TRUE(stream.ok()) << stream.status();
    while (true) {
      auto piece = (*stream)->Next();
      ASSERT_TRUE(piece.ok()) << piece.status();
      if (*piece == nullptr) break;
      EXPECT_LE((*piece)->bytes.size(), kChunkBytes + 2000);
      streamed.insert(streamed.end(), (*piece)->records.begin(), (*piece)->records.end());
    }
  }
  EXPECT_EQ(streamed, all_);
}

TEST_P(RecordSourceConformance, ShardsByRecordAreEvenAndDisjoint) {
  const auto total = static_cast<double>(Open()->records());
  for (int count : {1, 3, 10}) {
    std::vector<std::string> together;
    for (int index = 0; index < count; ++index) {
      const auto source = Open({index, count, ShardBy::kRecord});
      EXPECT_NEAR(static_cast<double>(source->records()), total / count, 1.0);
      const auto records = All(*source);
      together.insert(together.end(), records.begin(), records.end());
    }
    EXPECT_EQ(together, all_) << count;
  }
}

TEST_P(RecordSourceConformance, ShardsWithAMultipleBeginAtMultiples) {
  const uint64_t total = Open()->records();
  for (const int multiple : {1, 7, 100, static_cast<int>(total), 1 << 24}) {
    for (const int count : kUnderSanitizer ? std::vector{3} : std::vector{1, 3, 10}) {
      std::vector<std::string> together;
      uint64_t announced = 0;
      for (int index = 0; index < count; ++index) {
        EXPECT_TRUE(announced == total || announced % static_cast<uint64_t>(multiple) == 0);
        const auto source = Open({index, count, ShardBy::kRecord, multiple});
        EXPECT_NEAR(static_cast<double>(source->records()), static_cast<double>(total) / count,
                    std::min(static_cast<double>(multiple), static_cast<double>(total)));
        announced += source->records();
        const auto records = All(*source);
        together.insert(together.end(), records.begin(), records.end());
      }
      EXPECT_EQ(together, all_) << multiple << " " << count;
    }
  }
}

// Read as a whole or in pieces, the record with number n is the n-th of the data. If a chunk has
// fewer records than announced, numbers are skipped.
TEST_P(RecordSourceConformance, RecordsKnowTheirNumberInTheData) {
  for (const int count : {1, 3, 10}) {
    uint64_t next = 0;
    for (int index = 0; index < count; ++index) {
      const auto source = Open({index, count, ShardBy::kRecord});
      for (size_t i = 0; i < source->chunks().size(); ++i) {
        EXPECT_GE((*source->Read(i))->Number(0), next);
        auto stream = source->Stream(i);
        ASSERT_TRUE(stream.ok()) << stream.status();
        while (const auto piece = (*stream)->Next().value()) {
          for (size_t record = 0; record < piece->records.size(); ++record) {
            ASSERT_GE(piece->Number(record), next) << index << " of " << count;
            if (format().exact()) {
              ASSERT_EQ(piece->Number(record), next);
            }
            next = piece->Number(record) + 1;
          }
        }
      }
    }
    EXPECT_LE(next, Open()->records());
  }
  SourceSpec third = Spec({2, 3, ShardBy::kFile});
  third.first_number = 4001;
  EXPECT_EQ((*(*OpenSource(*files_, third))->Read(0))->Number(0), 4001u);
}

TEST_P(RecordSourceConformance, ShardsByFileTakeEveryNthFile) {
  EXPECT_THAT(Open({0, 2, ShardBy::kFile})->files(), ElementsAre(Path("a"), Path("c")));
  EXPECT_EQ(All(*Open({1, 2, ShardBy::kFile})), written_[1]);
  EXPECT_EQ(Open({3, 4, ShardBy::kFile})->records(), 0u);
}

TEST_P(RecordSourceConformance, AChunkOutlivesItsSource) {
  auto source = Open();
  const auto chunk = *source->Read(0);
  source = nullptr;
  EXPECT_EQ(chunk->records[0], all_[0]);
}

TEST_P(FileSourceConformance, AnIndexChangesNothingButTheScan) {
  const auto scanned = Open();
  for (const std::string& path : scanned->files()) {
    auto index = ScanRecords(*files_, path, *FindFileRules(*files_, path, {}));
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_TRUE(WriteRecordIndex(*files_, path, *index).ok());
  }
  const auto indexed = Open();
  EXPECT_EQ(indexed->files(), scanned->files());
  EXPECT_EQ(indexed->fingerprint(), scanned->fingerprint());
  EXPECT_EQ(All(*indexed), all_);
}

TEST_P(RecordSourceConformance, FingerprintsDistinguishData) {
  const uint64_t whole = Open()->fingerprint();
  EXPECT_EQ(Open()->fingerprint(), whole);
  EXPECT_NE(Open({}, {Path("a")})->fingerprint(), whole);
  EXPECT_NE(Open({0, 2, ShardBy::kRecord})->fingerprint(),
            Open({1, 2, ShardBy::kRecord})->fingerprint());
  written_[1].push_back(written_[1][0]);
  format().Write(*files_, Path("b"), written_[1]);
  EXPECT_NE(Open()->fingerprint(), whole);
}

TEST_P(RecordSourceConformance, ARecordMayBeLargerThanAChunk) {
  const std::vector<std::string> records = {format().Record(1, 100), format().Record(2, 3'000'000),
                                            format().Record(3, 100)};
  format().Write(*files_, Path("large"), records);
  EXPECT_EQ(All(*Open({}, {Path("large")})), records);
}

TEST_P(RecordSourceConformance, SomeFilesMayHaveNoRecordsButNotAll) {
  format().Write(*files_, Path("empty"), {});
  EXPECT_EQ(All(*Open({}, {Path("empty"), Path("b")})), written_[1]);
  const auto nothing = OpenSource(*files_, Spec({}, {Path("empty")}));
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(nothing.status().message(), HasSubstr(Path("empty")));
}

INSTANTIATE_TEST_SUITE_P(Members, RecordSourceConformance, testing::ValuesIn(AllSourceFormats()),
                         [](const auto& member) { return member.param->name(); });
INSTANTIATE_TEST_SUITE_P(Members, FileSourceConformance, testing::ValuesIn(FileSourceFormats()),
                         [](const auto& member) { return member.param->name(); });

}  // namespace
}  // namespace muster::data
