// Inputs with a cache of compiled features give what they give without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "muster/base/random.h"
#include "muster/base/strings.h"
#include "muster/train/input/compiled/feature_cache.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kCompiledRows = 24010;  // in two chunks
constexpr std::string_view kColumns = R"(
inputs:
  id: int
  x: float
  color: string
  tags: {type: string, list: true}
  sizes: {type: float, list: true}
  who: int
  w: float
  y: int
label: y
weight: w
columns:
  x: {numeric: x, mean: 1, stddev: 2}
  many: {numeric: sizes, shape: 2}
  ranges: {bucketized: sizes, shape: 2, boundaries: [0.2, 0.7]}
  color: {vocabulary: color, words: [red, green]}
  color_hash: {hash: color, buckets: 70000}
  tag_hash: {hash: tags, buckets: 300}
  pair: {cross: [color, who], buckets: 20000000}
  grown: {keys: who}
  tag_kinds: {indicator: tag_hash}
  e: {embedding: tag_hash, dimension: 4}
  g: {embedding: grown, dimension: 4}
  h: {embedding: color_hash, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [color, pair, ranges]}
  dnn: {columns: [x, many, e, g, h, tag_kinds], hidden_units: [8]}
train: {batch_size: 64, epochs: 3, seed: 5}
)";

std::string Rows(int rows) {
  static constexpr const char* kColors[] = {"red", "green", "blue", ""};
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  std::string csv = "id,x,color,tags,sizes,who,w,y\n";
  for (int i = 0; i < rows; ++i) {
    std::string tags;
    for (uint64_t k = random.Below(4); k > 0; --k) {
      tags += StrCat(tags.empty() ? "" : "|", "t", random.Below(50));
    }
    csv += StrCat(i, ",", random.Normal(), ",", kColors[random.Below(4)], ",", tags, ",",
                  random.UniformDouble(), "|", random.UniformDouble(), ",",
                  static_cast<int64_t>(random.Below(1000)) - 1, ",", random.Below(3), ",",
                  random.Below(2), "\n");
  }
  return csv;
}

template <typename Number>
void Print(const std::vector<Number>& values, std::string* text) {
  *text += StrCat("[", values.size(), ":");
  text->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  *text += "]";
}

class CompiledInputTest : public TrainingTest {
 protected:
  CompiledInputTest() {
    Write("rows.csv", Rows(kCompiledRows));
    folder_ = testing::TempDir() + "compiled-" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    SetModel(kColumns);
    spec_.source.patterns = {"rows.csv"};
    spec_.reader = {.batch_size = 64, .shuffle = true, .seed = 5, .open_chunks = 3, .epochs = 2};
  }
  ~CompiledInputTest() override { std::filesystem::remove_all(folder_); }

  void SetModel(std::string_view text) {
    auto spec = model::ParseModelSpec(*files_, text, "spec.yaml");
    ASSERT_TRUE(spec.ok()) << spec.status();
    auto model = model::BuildModel(*spec);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  std::shared_ptr<const FeatureCache> OpenCache(FeatureCacheOptions options = {}) {
    options.folder = folder_;
    auto cache = FeatureCache::Open(options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return *std::move(cache);
  }
  std::unique_ptr<Input> Open(std::shared_ptr<const FeatureCache> cache,
                              const data::Position* start = nullptr) {
    spec_.cache = std::move(cache);
    auto input = Input::Open(*files_, model_, spec_, start);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  }
  std::vector<std::string> Compiled() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().string());
    }
    return names;
  }

  static std::string Describe(const InputBatch& batch) {
    std::string text = StrCat(batch.epoch, " ", batch.shard, " ", batch.dropped, " ");
    Print(batch.features.labels, &text);
    Print(batch.features.weights, &text);
    for (const auto& column : batch.features.dense) Print(column.values, &text);
    for (const auto& list : batch.features.id_lists) {
      Print(list.ids, &text);
      Print(list.offsets, &text);
      Print(list.weights, &text);
      Print(list.keys, &text);
    }
    return text + data::SerializePosition(batch.position);
  }
  // All batches as text, the end with its counts, and the warnings.
  std::vector<std::string> ReadAll(Input& input) {
    std::vector<std::string> all;
    while (true) {
      const auto batch = input.Next();
      for (std::string& warning : input.ConsumeWarnings()) warnings_.push_back(warning);
      if (!batch.ok()) {
        all.emplace_back(ToStd(batch.status().message()));
        return all;
      }
      if (*batch == nullptr) break;
      all.push_back(Describe(**batch));
    }
    all.push_back(StrCat("end ", input.dropped_at_end(), " ", input.bad_records(), " ",
                         input.steps(), " ", input.records()));
    return all;
  }

  std::string folder_;
  model::Model model_;
  InputSpec spec_;
  std::vector<std::string> warnings_;
};

// Fewer rows than are watched in a long data set: what there is to warn of is known at their end.
TEST_F(CompiledInputTest, LaterTrainingsGiveTheWarningsOfTheFirst) {
  constexpr std::string_view kNoWord = R"(
inputs: {a: string, y: int}
label: y
columns: {a: {vocabulary: a, words: [other]}}
model: {type: linear, linear: {columns: [a]}}
)";
  std::string csv = "a,y\n";
  for (int i = 0; i < 200; ++i) csv += StrCat("word", i % 3, ",", i % 2, "\n");
  Write("rows.csv", csv);
  SetModel(kNoWord);
  spec_.watch_data = true;
  for (const int epochs : {1, 3}) {
    std::filesystem::remove_all(folder_);
    spec_.reader.epochs = epochs;
    warnings_.clear();
    const auto alone = ReadAll(*Open(nullptr));
    ASSERT_THAT(warnings_, ElementsAre(HasSubstr("finds no id in 100 % of the first 200 rows")));
    const auto expected = std::exchange(warnings_, {});
    for (const char* const pass : {"which writes the file", "which reads it"}) {
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone) << pass;
      EXPECT_EQ(std::exchange(warnings_, {}), expected) << pass;
    }
  }
}

TEST_F(CompiledInputTest, EveryEpochOfEveryReaderIsTheSame) {
  for (const bool shuffle : {true, false}) {
    for (const bool drop : {false, true}) {
      std::filesystem::remove_all(folder_);
      spec_.reader.shuffle = shuffle;
      spec_.reader.drop_remainder = drop;
      const auto alone = ReadAll(*Open(nullptr));
      EXPECT_EQ(alone.size(), 2 * (kCompiledRows / 64 + (drop ? 0 : 1)) + 1);
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
      // Of the rows that each epoch drops a chunk is not whole until a later epoch.
      EXPECT_THAT(Compiled(), SizeIs(testing::Le(1))) << "shuffle " << shuffle;
      if (!drop) {
        EXPECT_THAT(Compiled(), SizeIs(1)) << "shuffle " << shuffle;
      }
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
    }
  }
  EXPECT_THAT(warnings_, IsEmpty());
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
  Write("rows.csv", Rows(kCompiledRows + 1));
  const auto other_rows = ReadAll(*Open(nullptr));
  EXPECT_EQ(ReadAll(*Open(OpenCache())), other_rows);
  EXPECT_EQ(Compiled().size(), 2);
  std::string text(kColumns);
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

TEST_F(CompiledInputTest, AFileThatIsCutOrDamagedIsMadeAgainWithAWord) {
  const auto alone = ReadAll(*Open(nullptr));
  const auto path_of = [&] { return Compiled().front(); };
  const std::vector<std::function<void(const std::string&)>> damages = {
      [](const std::string& path) {
        std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
      },
      [](const std::string& path) { std::filesystem::resize_file(path, 3); },
      [](const std::string& path) { std::filesystem::resize_file(path, 0); },
      [](const std::string& path) {  // a byte in the block
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(5000);
        file.put('?');
      },
      [](const std::string& path) {  // a byte of the end
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-100, std::ios::end);
        file.put('?');
      }};
  ReadAll(*Open(OpenCache()));
  for (const auto& damage : damages) {
    ASSERT_EQ(Compiled().size(), 1);
    damage(path_of());
    warnings_.clear();
    EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
    ASSERT_EQ(warnings_.size(), 1);
    EXPECT_THAT(warnings_[0], HasSubstr(folder_));
    warnings_.clear();
    EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
    EXPECT_THAT(warnings_, IsEmpty());
  }
}

TEST_F(CompiledInputTest, AFileMayBeRemovedOrCutWhileItIsRead) {
  const auto alone = ReadAll(*Open(nullptr));
  ReadAll(*Open(OpenCache()));
  spec_.reader.chunks_ahead = 0;
  const auto read_while = [&](const std::function<void()>& act) {
    auto input = Open(OpenCache());
    std::vector<std::string> all = {Describe(**input->Next())};
    act();
    const auto rest = ReadAll(*input);
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  EXPECT_EQ(read_while([&] { std::filesystem::resize_file(Compiled().front(), 100); }), alone);
  ReadAll(*Open(OpenCache()));
  EXPECT_EQ(read_while([&] { std::filesystem::remove_all(folder_); }), alone);
}

// Also if its blocks were right when an earlier epoch read them.
TEST_F(CompiledInputTest, AFileMayBeDamagedBetweenTwoEpochs) {
  spec_.reader.epochs = 4;
  spec_.reader.chunks_ahead = 0;
  const auto alone = ReadAll(*Open(nullptr));
  for (const char wrong : {'\0', 'x'}) {
    ReadAll(*Open(OpenCache()));
    auto input = Open(OpenCache());
    std::vector<std::string> all;
    while (all.size() < alone.size() / 2) all.push_back(Describe(**input->Next()));
    {
      const auto path = Compiled().front();
      const auto size = static_cast<size_t>(std::filesystem::file_size(path));
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(64);
      file << std::string(size / 2, wrong);
    }
    const auto rest = ReadAll(*input);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all, alone);
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(CompiledInputTest, BadRecordsAreNotCompiled) {
  Write("rows.csv", Rows(kCompiledRows) + "1,x,red,,1|2,3,1,0\n");
  spec_.reader.max_bad_records = 1;
  const auto alone = ReadAll(*Open(nullptr));
  EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
  EXPECT_THAT(Compiled(), IsEmpty());
  ASSERT_EQ(warnings_.size(), 1);
  EXPECT_THAT(warnings_[0], HasSubstr("bad records"));
}

TEST_F(CompiledInputTest, TheFilesUsedLongestAgoGo) {
  spec_.reader.epochs = 1;
  ReadAll(*Open(OpenCache()));
  const std::string first = Compiled().front();
  const uint64_t bytes = std::filesystem::file_size(first);
  Write("rows.csv", Rows(kCompiledRows - 1));
  ReadAll(*Open(OpenCache({.most_bytes = bytes + bytes / 2})));
  EXPECT_EQ(Compiled().size(), 1);
  EXPECT_NE(Compiled().front(), first);
}

TEST_F(CompiledInputTest, SmallDataIsNotCompiled) {
  ReadAll(*Open(OpenCache({.least_data = uint64_t{1} << 30})));
  EXPECT_THAT(Compiled(), IsEmpty());
}

TEST_F(CompiledInputTest, AFolderThatCannotBeWrittenIsNamedOnce) {
  const auto alone = ReadAll(*Open(nullptr));
  auto cache = OpenCache();
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(ReadAll(*Open(std::move(cache))), alone);
  ASSERT_EQ(warnings_.size(), 1);
  EXPECT_THAT(warnings_[0], HasSubstr(folder_));
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
