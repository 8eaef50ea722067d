#include "muster/train/weights/weight_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kFloats = int64_t{20} << 20;  // 80 MiB

TEST(WeightMemoryTest, WhatDoesNotFitLiesInAFile) {
  const auto in_memory = AllocateWeights(kFloats, "t", uint64_t{1} << 40);
  ASSERT_TRUE(in_memory.ok()) << in_memory.status();
  EXPECT_EQ(in_memory->get_deleter().mapped, 0u);
  const auto small = AllocateWeights(1000, "t", 0);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->get_deleter().mapped, 0u);

  const auto in_file = AllocateWeights(kFloats, "t", uint64_t{100} << 20);
  ASSERT_TRUE(in_file.ok()) << in_file.status();
  EXPECT_EQ(in_file->get_deleter().mapped, kFloats * sizeof(float));
  float* const data = in_file->get();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  for (int64_t i = 0; i < kFloats; i += 1000) data[i] = static_cast<float>(i);
  EXPECT_EQ(data[1'000'000], 1'000'000.0f);
}

TEST(WeightMemoryTest, AFolderWithoutRoomIsNamed) {
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  for (const char* const folder : {"/nowhere", "/dev/shm"}) {
    setenv("TMPDIR", folder, 1);
    const auto status = AllocateWeights(kFloats, "dnn/e", 0).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(status.ToString(),
                AllOf(HasSubstr("dnn/e takes 80 MiB"), HasSubstr(folder), HasSubstr("set TMPDIR")));
  }
  old.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", old.c_str(), 1);
}

}  // namespace
}  // namespace muster::train
