// A source that several threads read.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "muster/data/source_conformance.h"
#include "muster/data/test_data.h"

namespace muster::data {
namespace {

class SourceThreadsTest : public RecordSourceConformance {};

TEST_P(SourceThreadsTest, ManyThreadsReadAnyChunk) {
  const auto source = Open();
  const size_t chunks = source->chunks().size();
  std::vector<std::vector<std::string>> read(chunks);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < chunks; i += 3) {
          const size_t chunk = chunks - 1 - i;
          const auto got = source->Read(chunk);
          if (got.ok()) read[chunk].assign((*got)->records.begin(), (*got)->records.end());
        }
      });
    }
  }
  std::vector<std::string> together;
  for (const auto& part : read) together.insert(together.end(), part.begin(), part.end());
  EXPECT_EQ(together, all_);
}

INSTANTIATE_TEST_SUITE_P(Members, SourceThreadsTest, testing::ValuesIn(AllSourceFormats()),
                         [](const auto& member) { return member.param->name(); });

}  // namespace
}  // namespace muster::data
