#include "muster/data/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "muster/base/random.h"
#include "muster/base/test_size.h"
#include "muster/data/number_source.h"
#include "muster/data/source.h"
#include "muster/data/test_data.h"
#include "muster/formats/csv.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

formats::Schema IdSchema() {
  formats::Field field;
  field.name = "id";
  field.type = formats::ValueType::kInt;
  return {{field}};
}

struct Batch {
  std::vector<int64_t> ids;
  int64_t epoch;
  friend bool operator==(const Batch&, const Batch&) = default;
};

absl::StatusOr<std::vector<Batch>> Drain(BatchReader* reader, size_t most = 1'000'000) {
  std::vector<Batch> batches;
  formats::Columns columns(IdSchema());
  while (batches.size() < most) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&columns));
    if (!more) break;
    batches.push_back({columns.column(0).ints, reader->epoch()});
  }
  return batches;
}

std::unique_ptr<BatchReader> Open(std::shared_ptr<const RecordSource> source,
                                  const ReaderSpec& spec, const Position* start = nullptr) {
  auto reader = BatchReader::Create(std::move(source), IdSchema(), spec, start);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::vector<Batch> ReadAll(std::shared_ptr<const RecordSource> source, const ReaderSpec& spec) {
  auto batches = Drain(Open(std::move(source), spec).get());
  EXPECT_TRUE(batches.ok()) << batches.status();
  return batches.ok() ? *std::move(batches) : std::vector<Batch>{};
}

std::vector<int64_t> Ids(const std::vector<Batch>& batches, int64_t epoch) {
  std::vector<int64_t> ids;
  for (const Batch& batch : batches) {
    if (batch.epoch == epoch) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  }
  return ids;
}

std::vector<int64_t> UpTo(int count) {
  std::vector<int64_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(BatchReaderTest, WithoutShuffleRecordsComeInFileOrder) {
  const auto source = std::make_shared<NumberSource>(std::vector{5, 0, 1, 7});
  const auto batches = ReadAll(source, {.batch_size = 4, .epochs = 2});
  ASSERT_EQ(batches.size(), 8u);
  EXPECT_EQ(batches[3].ids.size(), 1u) << "a batch must not reach into the next epoch";
  EXPECT_EQ(Ids(batches, 0), UpTo(13));
  EXPECT_EQ(Ids(batches, 1), UpTo(13));
}

TEST(BatchReaderTest, TheLastSmallBatchCanBeDropped) {
  const auto source = std::make_shared<NumberSource>(std::vector{5, 8});
  const auto batches = ReadAll(source, {.batch_size = 4, .epochs = 2, .drop_remainder = true});
  EXPECT_EQ(batches.size(), 6u);
  EXPECT_EQ(Ids(batches, 1), UpTo(12));
  EXPECT_TRUE(ReadAll(source, {.batch_size = 14, .epochs = 3, .drop_remainder = true}).empty());
}

TEST(BatchReaderTest, RepeatsIndefinitely) {
  const auto source = std::make_shared<NumberSource>(std::vector{3});
  const auto reader = Open(source, {.batch_size = 2, .epochs = 0});
  EXPECT_EQ(Drain(reader.get(), 2001)->back().epoch, 1000);
}

TEST(BatchReaderTest, RepeatingIndefinitelyWithoutABatchIsAnError) {
  const auto source = std::make_shared<NumberSource>(std::vector{3});
  const auto reader = Open(source, {.batch_size = 4, .epochs = 0, .drop_remainder = true});
  EXPECT_THAT(Drain(reader.get()).status().message(),
              HasSubstr("an epoch of 3 records gives no batch of 4"));
  const auto empty = std::make_shared<NumberSource>(std::vector<int>{});
  EXPECT_THAT(Drain(Open(empty, {.epochs = 0}).get()).status().message(),
              HasSubstr("use fewer tasks, or --epochs"));
  EXPECT_TRUE(ReadAll(empty, {.epochs = 5}).empty());
}

TEST(BatchReaderTest, EachShuffledEpochIsAnotherPermutation) {
  const auto source = std::make_shared<NumberSource>(std::vector{50, 1, 0, 80, 33, 2, 64});
  ReaderSpec spec = {.batch_size = 16, .shuffle = true, .seed = 5, .open_chunks = 3, .epochs = 3};
  const auto batches = ReadAll(source, spec);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    auto ids = Ids(batches, epoch);
    EXPECT_NE(ids, UpTo(source->count()));
    EXPECT_NE(ids, Ids(batches, (epoch + 1) % 3));
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, UpTo(source->count()));
  }
  EXPECT_EQ(ReadAll(source, spec), batches) << "the same seed must give the same batches";
  spec.seed = 6;
  EXPECT_NE(ReadAll(source, spec), batches);
}

TEST(BatchReaderTest, TheFirstEpochCanBeALaterOne) {
  const auto source = std::make_shared<NumberSource>(std::vector{50, 1, 0, 80, 33, 2, 64});
  ReaderSpec spec = {.batch_size = 16, .shuffle = true, .seed = 5, .open_chunks = 3, .epochs = 3};
  const auto batches = ReadAll(source, spec);
  spec.first_epoch = 2;
  const auto last = ReadAll(source, spec);
  EXPECT_EQ(last.front().epoch, 2);
  EXPECT_EQ(last, std::vector<Batch>(batches.end() - std::ssize(last), batches.end()));
  EXPECT_EQ(Ids(last, 2), Ids(batches, 2));
}

// If all chunks are open, a record stands at any place with the same probability.
TEST(BatchReaderTest, AShuffleOfOpenChunksIsUniform) {
  const auto source = std::make_shared<NumberSource>(std::vector{5, 1, 6});
  const int seeds = Repetitions(6000), count = source->count();
  std::vector<std::vector<int>> seen(count, std::vector<int>(count));
  for (int seed = 0; seed < seeds; ++seed) {
    const auto batches = ReadAll(
        source, {.batch_size = count, .shuffle = true, .seed = static_cast<uint64_t>(seed)});
    for (int place = 0; place < count; ++place) ++seen[batches[0].ids[place]][place];
  }
  for (const auto& places : seen) {
    for (const int times : places) EXPECT_NEAR(times, seeds / count, 5 * std::sqrt(seeds / count));
  }
}

TEST(BatchReaderTest, OnlyOpenChunksAreInMemory) {
  const auto source = std::make_shared<NumberSource>(std::vector<int>(40, 30));
  ReadAll(source, {.batch_size = 1, .shuffle = true, .open_chunks = 4, .chunks_ahead = 0});
  EXPECT_LE(source->most_chunks_alive(), 5);
  const auto ahead = std::make_shared<NumberSource>(std::vector<int>(40, 30));
  ReadAll(ahead, {.batch_size = 1, .shuffle = true, .open_chunks = 4, .chunks_ahead = 3});
  EXPECT_LE(ahead->most_chunks_alive(), 5 + 3);
  const auto streamed = std::make_shared<NumberSource>(std::vector<int>(40, 30));
  ReadAll(streamed, {.batch_size = 1, .chunks_ahead = 0});
  EXPECT_LE(streamed->most_chunks_alive(), 2);
}

TEST(BatchReaderTest, ABatchOutlivesItsReader) {
  formats::Schema schema = IdSchema();
  schema.fields[0].type = formats::ValueType::kString;
  formats::Columns columns(schema);
  auto source = std::make_shared<NumberSource>(std::vector{5, 5, 5});
  auto reader = *BatchReader::Create(source, schema, {.batch_size = 12});
  ASSERT_TRUE(*reader->Next(&columns));
  reader = nullptr;
  source = nullptr;
  EXPECT_EQ(columns.column(0).strings[11], "11");
}

// A reader is stopped after any batch; its position is saved, printed and parsed, and a reader that
// continues there must give the same rest.
TEST(BatchReaderTest, ContinuesExactlyFromAnySavedPosition) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomStream random(seed, RandomPurpose::kSampleData, 0);
    std::vector<int> sizes(1 + random.Below(12));
    for (int& size : sizes) size = static_cast<int>(random.Below(3) == 0 ? 0 : random.Below(40));
    const auto source = std::make_shared<NumberSource>(sizes);
    for (int bad = 0; bad < 3; ++bad) source->SpoilRecord(static_cast<int>(random.Below(300)));
    const ReaderSpec spec = {.batch_size = static_cast<int>(1 + random.Below(17)),
                             .shuffle = seed % 3 != 0,
                             .seed = seed,
                             .open_chunks = static_cast<int>(1 + random.Below(6)),
                             .epochs = 3,
                             .drop_remainder = random.Below(2) == 0,
                             .max_bad_records = 3};
    const auto whole = ReadAll(source, spec);
    for (int trial = 0; trial < 12; ++trial) {
      const size_t cut = random.Below(whole.size() + 1);
      const auto first = Open(source, spec);
      ASSERT_EQ(Drain(first.get(), cut)->size(), cut);
      const auto position = ParsePosition(SerializePosition(first->position()));
      ASSERT_TRUE(position.ok()) << position.status();
      const auto rest = Open(source, spec, &*position);
      ASSERT_EQ(rest->position(), *position) << SerializePosition(*position);
      const auto batches = Drain(rest.get());
      ASSERT_TRUE(batches.ok()) << batches.status();
      ASSERT_EQ(*batches, std::vector(whole.begin() + cut, whole.end()))
          << SerializePosition(*position);
    }
  }
}

TEST(BatchReaderTest, PositionsOfOtherDataOrSeedAreRefused) {
  const auto source = std::make_shared<NumberSource>(std::vector{9, 9, 9});
  const ReaderSpec spec = {.batch_size = 4, .shuffle = true, .seed = 1};
  const auto reader = Open(source, spec);
  ASSERT_EQ(Drain(reader.get(), 2)->size(), 2u);
  const Position position = reader->position();
  const auto refused = [&](const RecordSource& other, const ReaderSpec& other_spec,
                           Position start) {
    const auto shared = std::shared_ptr<const RecordSource>(&other, [](const auto*) {});
    return BatchReader::Create(shared, IdSchema(), other_spec, &start).status();
  };
  EXPECT_TRUE(refused(*source, spec, position).ok());
  ReaderSpec other = spec;
  other.seed = 2;
  EXPECT_THAT(refused(*source, other, position).message(), HasSubstr("seed 1, not 2"));
  other = spec;
  other.shuffle = false;
  EXPECT_EQ(refused(*source, other, position).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused(NumberSource({9, 9, 8}), spec, position).message(), HasSubstr("other data"));
  Position strange = position;
  strange.open[0].consumed = 9;
  EXPECT_EQ(refused(*source, spec, strange).code(), absl::StatusCode::kFailedPrecondition);
  strange = position;
  strange.next_ordinal = 4;
  EXPECT_EQ(refused(*source, spec, strange).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(BatchReaderTest, BadRowsAreReportedOrLeftOut) {
  const auto source = std::make_shared<NumberSource>(std::vector{4, 4});
  source->SpoilRecord(2);
  source->SpoilRecord(5);
  const auto strict = Open(source, {.batch_size = 8});
  const absl::Status status = Drain(strict.get()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "numbers: record at byte 20: column 'id': 'spoilt' is not an int");
  EXPECT_EQ(Drain(strict.get()).status(), status) << "the error must be returned again";

  const auto tolerant = Open(source, {.batch_size = 4, .epochs = 3, .max_bad_records = 2});
  const auto batches = Drain(tolerant.get());
  ASSERT_TRUE(batches.ok()) << batches.status();
  EXPECT_THAT((*batches)[0].ids, ElementsAre(0, 1, 3, 4)) << "batches must be filled up";
  EXPECT_THAT(Ids(*batches, 2), ElementsAre(0, 1, 3, 4, 6, 7))
      << "bad rows are counted anew in each epoch";
  EXPECT_THAT(ToStd(Drain(Open(source, {.max_bad_records = 1}).get()).status().message()),
              testing::EndsWith("(1 bad record before it was left out: --max-bad-records allows no "
                                "more)"));
}

TEST(BatchReaderTest, RowsFoundWrongLaterAreRejected) {
  const auto source = std::make_shared<NumberSource>(std::vector{3, 3});
  const auto reader = Open(source, {.batch_size = 6, .max_bad_records = 2});
  formats::Columns columns(IdSchema());
  ASSERT_TRUE(*reader->Next(&columns));
  EXPECT_EQ(reader->Origin(4), "numbers: record at byte 40");
  const absl::Status why = absl::InvalidArgumentError("no such label");
  EXPECT_TRUE(reader->RejectRow(1, why, &columns).ok());
  EXPECT_TRUE(reader->RejectRow(1, why, &columns).ok());
  EXPECT_THAT(columns.column(0).ints, ElementsAre(0, 3, 4, 5));
  EXPECT_EQ(reader->Origin(1), "numbers: record at byte 30");
  EXPECT_EQ(reader->position().bad_records, 2u);
  EXPECT_EQ(reader->RejectRow(0, why, &columns).message(),
            "numbers: record at byte 0: no such label (2 bad records before it were left out: "
            "--max-bad-records allows no more)");
}

// Reads like a caller that finds an error in each row of `wrong`; returns the remaining rows by
// batch.
absl::StatusOr<std::vector<Batch>> Rejecting(BatchReader* reader, const std::set<int64_t>& wrong) {
  std::vector<Batch> batches;
  formats::Columns columns(IdSchema());
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(bool more, reader->Next(&columns));
    if (!more) return batches;
    for (int row = 0; more && row < columns.rows();) {
      if (!wrong.contains(columns.column(0).ints[row])) {
        ++row;
        continue;
      }
      MUSTER_RETURN_IF_ERROR(reader->RejectRow(row, absl::InvalidArgumentError("no"), &columns));
      MUSTER_ASSIGN_OR_RETURN(more, reader->Refill(&columns));
    }
    if (more) batches.push_back({columns.column(0).ints, reader->epoch()});
  }
}

TEST(BatchReaderTest, TheNextRowsTakeThePlaceOfRejectedOnes) {
  const auto source = std::make_shared<NumberSource>(std::vector{5, 4});
  const auto reader = Open(source, {.batch_size = 3, .epochs = 2, .max_bad_records = 4});
  const auto batches = Rejecting(reader.get(), {1, 2, 4, 8});
  ASSERT_TRUE(batches.ok()) << batches.status();
  EXPECT_EQ(*batches,
            (std::vector<Batch>{{{0, 3, 5}, 0}, {{6, 7}, 0}, {{0, 3, 5}, 1}, {{6, 7}, 1}}));
  EXPECT_EQ(reader->bad_rows(), 4u) << "only the last epoch counts";
}

TEST(BatchReaderTest, ABatchWithoutRemainingRowsIsSkipped) {
  const auto source = std::make_shared<NumberSource>(std::vector{4});
  ReaderSpec spec = {.batch_size = 2, .epochs = 2, .max_bad_records = 4};
  EXPECT_EQ(Rejecting(Open(source, spec).get(), {2, 3}).value(),
            (std::vector<Batch>{{{0, 1}, 0}, {{0, 1}, 1}}));
  EXPECT_TRUE(Rejecting(Open(source, spec).get(), {0, 1, 2, 3}).value().empty());
  spec.drop_remainder = true;
  const auto reader = Open(source, spec);
  EXPECT_EQ(Rejecting(reader.get(), {0}).value(), (std::vector<Batch>{{{1, 2}, 0}, {{1, 2}, 1}}));
  EXPECT_EQ(reader->dropped(), 2u);
  spec.epochs = 0;
  spec.drop_remainder = false;
  EXPECT_THAT(Rejecting(Open(source, spec).get(), {0, 1, 2, 3}).status().message(),
              HasSubstr("4 records, 4 of which were left out as bad, gives no batch of 2"));
}

TEST(BatchReaderTest, SpecsOutOfRangeAreRefused) {
  const auto source = std::make_shared<NumberSource>(std::vector{3});
  EXPECT_FALSE(BatchReader::Create(source, IdSchema(), {.batch_size = 0}).ok());
  EXPECT_FALSE(BatchReader::Create(source, IdSchema(), {.open_chunks = 0}).ok());
}

// The same test over real files: shuffled, with several chunks.
TEST(BatchReaderTest, ReadsFilesAndReportsTheirLines) {
  const auto files = io::NewMemoryFileSystem();
  std::string text = "filler,id\n";
  for (int i = 0; i < 6000; ++i) text += StrCat("\"", std::string(500, 'x'), "\n\",", i, "\n");
  WriteText(*files, "a.csv", text);
  WriteText(*files, "b.csv", "filler,id\nx,6000\n\ny,oops\n");
  const std::shared_ptr<const RecordSource> source = *OpenSource(*files, {.patterns = {"*.csv"}});
  EXPECT_GT(source->chunks().size(), 3u);
  const auto strict = Open(source, {.batch_size = 100, .shuffle = true});
  EXPECT_EQ(Drain(strict.get()).status().message(), "b.csv:4: column 'id': 'oops' is not an int");
  auto ids = Ids(
      ReadAll(source, {.batch_size = 100, .shuffle = true, .open_chunks = 2, .max_bad_records = 1}),
      0);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, UpTo(6001));
}

}  // namespace
}  // namespace muster::data
