// The warnings about the first rows of a training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "muster/train/input/compiled_input_test_support.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class DataWatchTest : public CompiledInputTest {
 protected:
  DataWatchTest() { spec_.watch_data = true; }

  // Rows without any word of the model's vocabulary, and with numbers that are not scaled.
  void WriteRows(int rows) {
    std::string csv = "a,n,y\n";
    for (int i = 0; i < rows; ++i) csv += StrCat("word", i % 3, ",", 5000 + i, ",", i % 2, "\n");
    Write("rows.csv", csv);
    SetModel(R"(
inputs: {a: string, n: float, y: int}
label: y
columns: {a: {vocabulary: a, words: [other]}, n: {numeric: n}}
model: {type: linear, linear: {columns: [a, n]}}
)");
  }
};

// Fewer rows than are watched in a long data set: what there is to warn of is known at their end.
TEST_F(DataWatchTest, LaterTrainingsGiveTheWarningsOfTheFirst) {
  WriteRows(200);
  for (const int epochs : {1, 3}) {
    std::filesystem::remove_all(folder_);
    spec_.reader.epochs = epochs;
    warnings_.clear();
    const auto alone = ReadAll(*Open(nullptr));
    const auto expected = std::exchange(warnings_, {});
    ASSERT_THAT(expected, ElementsAre(HasSubstr("finds no id in 100 % of the first 200 rows"),
                                      HasSubstr("normalize: auto")));
    for (const char* const pass : {"which writes the file", "which reads it"}) {
      EXPECT_EQ(ReadAll(*Open(OpenCache())), alone) << pass;
      EXPECT_THAT(std::exchange(warnings_, {}), UnorderedElementsAreArray(expected)) << pass;
    }
  }
}

// Not only at the end of a training with many epochs of few rows.
TEST_F(DataWatchTest, TheFirstEpochIsEnough) {
  WriteRows(3000);
  spec_.reader.epochs = 5;
  auto input = Open(nullptr);
  while (true) {
    const auto batch = input->Next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr);
    for (std::string& warning : input->ConsumeWarnings()) warnings_.push_back(warning);
    if ((*batch)->epoch == 2) break;
  }
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("finds no id in 100 % of the first 3000 rows"),
                                     HasSubstr("normalize: auto")));
}

// A training that continues 40 rows before the end of an epoch: they say little.
TEST_F(DataWatchTest, TheRestOfAnEpochIsNotEnough) {
  WriteRows(3000);
  spec_.reader.epochs = 5;
  auto first = Open(nullptr);
  data::Position position;
  while (position.emitted < 2960) position = (*first->Next())->position;
  auto input = Open(nullptr, &position);
  warnings_.clear();
  while (true) {
    const auto batch = input->Next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr);
    for (std::string& warning : input->ConsumeWarnings()) warnings_.push_back(warning);
    if ((*batch)->epoch == 3) break;
  }
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("finds no id in 100 % of the first 3"),
                                     HasSubstr("normalize: auto")));
}

}  // namespace
}  // namespace muster::train
