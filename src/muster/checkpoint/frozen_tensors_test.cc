#include "muster/checkpoint/frozen_tensors.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace muster::checkpoint {
namespace {

struct Table {
  int64_t rows;
  int64_t cols;
  int variable;
};

// Tensors of random bytes: with rows shorter than a block, of a block, and longer; one without
// rows; two of one variable; one that belongs to no variable.
constexpr Table kTables[] = {{1000, 3, 0}, {700, 32, 1}, {700, 32, 1}, {40, 1500, 2},
                             {0, 8, 3},    {9000, 1, 4}, {5, 7, -1}};

class FrozenTensorsTest : public ::testing::Test {
 protected:
  FrozenTensorsTest() : seed_(std::random_device()()), random_(seed_) {
    std::printf("seed %u\n", seed_);
    for (const Table& table : kTables) {
      std::vector<float>& values = memory_.emplace_back(table.rows * table.cols);
      for (float& value : values) value = static_cast<float>(random_() % 1000);
    }
    for (size_t i = 0; i < memory_.size(); ++i) {
      tensors_.push_back(
          {.name = StrCat("t", i),
           .type = formats::DataType::kFloat,
           .shape = {kTables[i].rows, kTables[i].cols},
           .bytes = {reinterpret_cast<char*>(memory_[i].data()), memory_[i].size() * sizeof(float)},
           .variable = kTables[i].variable});
    }
  }

  std::string Bytes() const {
    std::string all;
    for (const Tensor& tensor : tensors_) all.append(tensor.bytes.data(), tensor.bytes.size());
    return all;
  }

  // Changes some rows, or all, of a variable, as a step does.
  void Change() {
    const int variable = static_cast<int>(random_() % 5);
    int64_t rows = 0;
    for (const Table& table : kTables) {
      if (table.variable == variable) rows = table.rows;
    }
    std::vector<int32_t> touched;
    if (random_() % 8 == 0) {
      frozen_.BeforeAll(variable);
      for (int64_t row = 0; row < rows; ++row) touched.push_back(static_cast<int32_t>(row));
    } else {
      for (int i = 0; rows > 0 && i < 20; ++i) {
        touched.push_back(static_cast<int32_t>(random_() % static_cast<uint64_t>(rows)));
      }
      frozen_.BeforeRows(variable, touched);
    }
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (kTables[i].variable != variable) continue;
      for (const int32_t row : touched) {
        for (int64_t col = 0; col < kTables[i].cols; ++col)
          ++memory_[i][row * kTables[i].cols + col];
      }
    }
  }

  const unsigned seed_;
  std::mt19937 random_;
  std::vector<std::vector<float>> memory_;
  std::vector<Tensor> tensors_;
  FrozenTensors frozen_;
};

TEST_F(FrozenTensorsTest, ReadsTheFrozenValuesWhateverIsChangedMeanwhile) {
  frozen_.Prepare(tensors_);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) Change();  // while thawed
    const std::string before = Bytes();
    frozen_.Freeze(tensors_);
    std::string read(before.size(), '?');
    for (size_t done = 0; done < read.size();) {
      for (size_t i = random_() % 4; i > 0; --i) Change();
      const size_t size = std::min<size_t>(read.size() - done, 1 + random_() % 60'000);
      frozen_.Read({read.data() + done, size});
      done += size;
    }
    frozen_.Thaw();
    ASSERT_TRUE(read == before) << "seed " << seed_ << " round " << round;
  }
}

TEST_F(FrozenTensorsTest, ReadsOnASeparateThread) {
  for (int round = 0; round < 10; ++round) {
    const std::string before = Bytes();
    std::string read(before.size(), '?');
    std::atomic<bool> done = false;
    frozen_.Freeze(tensors_);
    std::jthread writer([&] {
      for (size_t at = 0; at < read.size(); at += 10'000) {
        frozen_.Read({read.data() + at, std::min<size_t>(read.size() - at, 10'000)});
      }
      frozen_.Thaw();
      done = true;
    });
    while (!done) Change();
    writer.join();
    ASSERT_TRUE(read == before) << "seed " << seed_ << " round " << round;
  }
}

TEST_F(FrozenTensorsTest, MayBeThawedUnreadAndFreezeOtherTensors) {
  frozen_.Freeze(tensors_);
  Change();
  frozen_.Thaw();
  tensors_.erase(tensors_.begin());
  const std::string before = Bytes();
  frozen_.Freeze(tensors_);
  for (int i = 0; i < 50; ++i) Change();
  std::string read(before.size(), '?');
  frozen_.Read(read);
  frozen_.Thaw();
  EXPECT_TRUE(read == before) << "seed " << seed_;
}

}  // namespace
}  // namespace muster::checkpoint
