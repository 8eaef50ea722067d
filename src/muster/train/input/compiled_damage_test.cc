// A compiled file, or the data, that is damaged: the rows are right all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "muster/train/input/compiled_input_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using CompiledDamageTest = CompiledInputTest;

TEST_F(CompiledDamageTest, AFileThatIsCutOrDamagedIsMadeAgainWithAWord) {
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

TEST_F(CompiledDamageTest, AFileMayBeRemovedOrCutWhileItIsRead) {
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
TEST_F(CompiledDamageTest, AFileMayBeDamagedBetweenTwoEpochs) {
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

TEST_F(CompiledDamageTest, AFileMayBeDamagedWhereATrainingContinues) {
  const auto alone = ReadAll(*Open(nullptr));
  for (const size_t batches : {1, 20, 375, 376, 500}) {
    auto first = Open(nullptr);
    const InputBatch* batch = nullptr;
    for (size_t i = 0; i < batches; ++i) batch = *first->Next();
    const data::Position position = batch->position;
    ReadAll(*Open(OpenCache()));
    const auto path = Compiled().front();
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(64);
    file << std::string(static_cast<size_t>(std::filesystem::file_size(path)) / 2, 'x');
    file.close();
    warnings_.clear();
    const auto rest = ReadAll(*Open(OpenCache(), &position));
    EXPECT_EQ(rest, std::vector(alone.begin() + static_cast<ptrdiff_t>(batches), alone.end()));
    EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("the data itself is read again")));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(CompiledDamageTest, BadRecordsAreNotCompiled) {
  Write("rows.csv", CompiledInputRows(kCompiledRows) + "1,x,red,,1|2,3,1,0\n");
  spec_.reader.max_bad_records = 1;
  const auto alone = ReadAll(*Open(nullptr));
  EXPECT_EQ(ReadAll(*Open(OpenCache())), alone);
  EXPECT_THAT(Compiled(), IsEmpty());
  ASSERT_EQ(warnings_.size(), 1);
  EXPECT_THAT(warnings_[0], HasSubstr("bad records"));
}

TEST_F(CompiledDamageTest, AFolderThatCannotBeWrittenIsNamedOnce) {
  const auto alone = ReadAll(*Open(nullptr));
  auto cache = OpenCache();
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(ReadAll(*Open(std::move(cache))), alone);
  ASSERT_EQ(warnings_.size(), 1);
  EXPECT_THAT(warnings_[0], HasSubstr(folder_));
}

}  // namespace
}  // namespace muster::train
