// Inputs with a cache of compiled features give what they give without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "muster/train/input/compiled_input_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CompiledInputTest, EveryEpochOfEveryReaderIsTheSame) {
  for (const bool shuffle : {true, false}) {
    for (const bool drop : {false, true}) {
      std::filesystem::remove_all(folder_);
      spec_.reader.shuffle = shuffle;
      spec_.reader.drop_remainder = drop;
      const auto alone = ReadAll(*Open(nullptr));
      EXPECT_EQ(alone.size(), 2 * (kCompiledRows / 64 + (drop ? 0 : 1)) + 1);
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
      // Without a shuffle each epoch drops the same rows, with one a later epoch may have them.
      const bool is_kept = Compiled().size() == 1;
      EXPECT_TRUE(is_kept || drop) << "shuffle " << shuffle;
      EXPECT_FALSE(is_kept && drop && !shuffle);
      if (is_kept) {
        EXPECT_THAT(warnings_, IsEmpty());
      } else {
        EXPECT_THAT(warnings_, ElementsAre(HasSubstr("--drop-remainder")));
      }
      warnings_.clear();
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
      if (is_kept) {
        EXPECT_THAT(warnings_, IsEmpty());
      }
      warnings_.clear();
    }
  }
}

TEST_F(CompiledInputTest, TheDataIsNotReadAgain) {
  spec_.reader.epochs = 1;
  const auto alone = ReadAll(*Open(OpenCache()));
  ASSERT_EQ(Compiled().size(), 1);
  // The same name, size and time, but no row of it is one.
  auto data = io::ReadFile(*files_, "rows.csv");
  ASSERT_TRUE(data.ok());
  const auto time = files_->Stat("rows.csv");
  auto other = io::NewMemoryFileSystem();
  auto file = other->OpenForWrite("rows.csv");
  ASSERT_TRUE(file.ok() && (*file)->Append(std::string(data->size(), 'x')).ok());
  ASSERT_TRUE((*file)->Close().ok());
  ASSERT_EQ(other->Stat("rows.csv")->modified_ns, time->modified_ns);
  spec_.cache = OpenCache();
  auto input = Input::Open(*other, model_, spec_);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(ReadAll(**input), alone);
}

TEST_F(CompiledInputTest, PositionsFitBoth) {
  const auto alone = ReadAll(*Open(nullptr));
  ReadAll(*Open(OpenCache()));
  for (const size_t batches : {1, 375, 376, 500}) {
    for (const bool first_cached : {false, true}) {
      auto first = Open(first_cached ? OpenCache() : nullptr);
      const InputBatch* batch = nullptr;
      for (size_t i = 0; i < batches; ++i) batch = *first->Next();
      const data::Position position = batch->position;
      const auto rest = ReadAll(*Open(first_cached ? nullptr : OpenCache(), &position));
      EXPECT_EQ(rest, std::vector(alone.begin() + static_cast<ptrdiff_t>(batches), alone.end()));
    }
  }
}

TEST_F(CompiledInputTest, ATrainingThatContinuesInTheMiddleCompilesALaterEpoch) {
  const auto alone = ReadAll(*Open(nullptr));
  auto first = Open(nullptr);
  const InputBatch* batch = nullptr;
  for (int i = 0; i < 20; ++i) batch = *first->Next();
  const data::Position position = batch->position;
  const auto rest = ReadAll(*Open(OpenCache(), &position));
  EXPECT_EQ(rest, std::vector(alone.begin() + 20, alone.end()));
  EXPECT_EQ(Compiled().size(), 1);
}

TEST_F(CompiledInputTest, ShardsHaveFilesOfTheirOwn) {
  const auto open = [&](std::shared_ptr<const FeatureCache> cache) {
    spec_.cache = std::move(cache);
    std::vector<InputShard> shards;
    for (int i = 0; i < 3; ++i) {
      shards.push_back(
          {.index = i, .shard = {.index = i, .count = 3, .by = data::ShardBy::kRecord}});
    }
    auto input = Input::OpenShards(*files_, model_, spec_, shards);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  };
  const auto alone = ReadAll(*open(nullptr));
  EXPECT_EQ(ReadAll(*open(OpenCache())), alone);
  EXPECT_EQ(Compiled().size(), 3);
  std::filesystem::remove(Compiled().front());
  EXPECT_EQ(ReadAll(*open(OpenCache())), alone);
  EXPECT_EQ(Compiled().size(), 3);
}

TEST_F(CompiledInputTest, OtherDataAndOtherColumnsHaveOtherFiles) {
  ReadAll(*Open(OpenCache()));
  Write("rows.csv", CompiledInputRows(kCompiledRows + 1));
  const auto other_rows = ReadAll(*Open(nullptr));
  EXPECT_EQ(ReadAll(*Open(OpenCache())), other_rows);
  EXPECT_EQ(Compiled().size(), 2);
  std::string text(kCompiledColumns);
  text.replace(text.find("70000"), 5, "70001");
  SetModel(text);
  const auto other_columns = ReadAll(*Open(nullptr));
  EXPECT_EQ(ReadAll(*Open(OpenCache())), other_columns);
  EXPECT_EQ(Compiled().size(), 3);
  EXPECT_EQ(ReadAll(*Open(OpenCache({.version = "2"}))), other_columns);
  EXPECT_EQ(Compiled().size(), 4);
  text.replace(text.find("hidden_units: [8]"), 17, "hidden_units: [9]");
  SetModel(text);
  ReadAll(*Open(OpenCache()));
  EXPECT_EQ(Compiled().size(), 4) << "what follows the columns does not matter";
}

TEST_F(CompiledInputTest, TheFilesUsedLongestAgoGo) {
  spec_.reader.epochs = 1;
  ReadAll(*Open(OpenCache()));
  const std::string first = Compiled().front();
  const uint64_t bytes = std::filesystem::file_size(first);
  Write("rows.csv", CompiledInputRows(kCompiledRows - 1));
  ReadAll(*Open(OpenCache({.most_bytes = bytes + bytes / 2})));
  EXPECT_EQ(Compiled().size(), 1);
  EXPECT_NE(Compiled().front(), first);
}

TEST_F(CompiledInputTest, SmallDataIsNotCompiled) {
  ReadAll(*Open(OpenCache({.least_data = uint64_t{1} << 30})));
  EXPECT_THAT(Compiled(), IsEmpty());
}

TEST_F(CompiledInputTest, TrainingsEndWithTheSameBytes) {
  TrainSpec training = Training();
  ASSERT_TRUE(Train("plain", training).ok());
  training.input.cache = OpenCache();
  ASSERT_TRUE(Train("first", training).ok());
  EXPECT_EQ(Compiled().size(), 1);
  ASSERT_TRUE(Train("second", training).ok());
  EXPECT_EQ(Weights("first"), Weights("plain"));
  EXPECT_EQ(Weights("second"), Weights("plain"));
}

}  // namespace
}  // namespace muster::train
