// Several trainings of one process, such as trials of a search, that write the same compiled file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "muster/train/input/compiled_input_test_support.h"

namespace muster::train {
namespace {

using CompiledThreadsTest = CompiledInputTest;

// What one of them reads, and its warnings.
struct Reader {
  InputSpec spec;
  std::vector<std::string> expected, read, warnings;
};

TEST_F(CompiledThreadsTest, EachReadsItsOwnBatchesAndTheFileIsWhole) {
  std::vector<Reader> readers(3);
  for (size_t i = 0; i < readers.size(); ++i) {
    // They write the chunks of the file in different orders.
    spec_.reader.seed = i;
    spec_.reader.batch_size = static_cast<int>(64 << i);
    readers[i].expected = ReadAll(*Open(nullptr));
    readers[i].spec = spec_;
    readers[i].spec.cache = OpenCache();
  }
  {
    std::vector<std::jthread> threads;
    for (Reader& reader : readers) {
      threads.emplace_back([this, &reader] {
        auto input = Input::Open(*files_, model_, reader.spec);
        ASSERT_TRUE(input.ok()) << input.status();
        reader.read = ReadAll(**input, &reader.warnings);
      });
    }
  }
  for (const Reader& reader : readers) {
    EXPECT_EQ(reader.read, reader.expected);
    EXPECT_THAT(reader.warnings, testing::IsEmpty());
  }
  EXPECT_EQ(Compiled().size(), 1);
  EXPECT_EQ(ReadAll(*Open(OpenCache())), readers.back().expected);
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

}  // namespace
}  // namespace muster::train
