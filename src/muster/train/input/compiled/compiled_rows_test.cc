// Rows have the bytes of docs/formats/compiled_features.md, whatever their columns and number are.
#include "muster/train/input/compiled/compiled_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/random.h"
#include "muster/train/input/compiled/row_compiler.h"

namespace muster::train {
namespace {

constexpr int64_t kMostIds = std::numeric_limits<int32_t>::max();

template <class Number>
void Fill(size_t count, RandomStream* random, std::vector<Number>* values) {
  for (size_t i = 0; i < count; ++i) {
    values->push_back(static_cast<Number>(random->Below(1 << 20) + 1));
  }
}

// Ids at both ends of their range, and others.
features::IdList MakeIds(const CompiledLayout::Ids& ids, int rows, RandomStream* random) {
  features::IdList list;
  if (ids.is_list) list.offsets.push_back(0);
  for (int row = 0; row < rows; ++row) {
    for (uint64_t left = ids.is_list ? random->Below(4) : 1; left > 0; --left) {
      const auto any = static_cast<int64_t>(random->Below(static_cast<uint64_t>(ids.ids)));
      const int64_t choices[] = {-1, 0, ids.ids - 1, any};
      list.ids.push_back(static_cast<int32_t>(choices[random->Below(4)]));
    }
    if (ids.is_list) list.offsets.push_back(static_cast<uint32_t>(list.ids.size()));
  }
  if (ids.has_weights) Fill(list.ids.size(), random, &list.weights);
  if (ids.has_keys) Fill(list.ids.size(), random, &list.keys);
  return list;
}

features::FeatureBatch MakeBatch(const CompiledLayout& layout, int rows) {
  RandomStream random(static_cast<uint64_t>(rows), RandomPurpose::kSampleData, 0);
  const auto count = static_cast<size_t>(rows);
  features::FeatureBatch batch;
  batch.rows = rows;
  Fill(count * static_cast<size_t>(layout.label_width), &random, &batch.labels);
  if (layout.has_weight) Fill(count, &random, &batch.weights);
  for (const int width : layout.dense) {
    batch.dense.emplace_back().width = width;
    Fill(count * static_cast<size_t>(width), &random, &batch.dense.back().values);
  }
  for (const CompiledLayout::Ids& ids : layout.id_lists) {
    batch.id_lists.push_back(MakeIds(ids, rows, &random));
  }
  return batch;
}

template <class Number>
void Append(const std::vector<Number>& values, size_t begin, size_t count, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values.data() + begin), count * sizeof(Number));
}

// The bytes of a row, one after the other, in the order of the format's document.
std::string ExpectedRow(const CompiledLayout& layout, const features::FeatureBatch& batch,
                        int row) {
  std::string bytes;
  const auto at = static_cast<size_t>(row), labels = static_cast<size_t>(layout.label_width);
  if (labels > 0) Append(batch.labels, at * labels, labels, &bytes);
  if (layout.has_weight) Append(batch.weights, at, 1, &bytes);
  for (const features::DenseColumn& column : batch.dense) {
    const auto width = static_cast<size_t>(column.width);
    Append(column.values, at * width, width, &bytes);
  }
  for (const bool lists : {false, true}) {
    for (size_t i = 0; i < layout.id_lists.size(); ++i) {
      const CompiledLayout::Ids& ids = layout.id_lists[i];
      if (ids.is_list != lists) continue;
      const features::IdList& list = batch.id_lists[i];
      const size_t begin = list.begin(row), count = list.end(row) - begin;
      if (lists) Append(std::vector<uint32_t>{static_cast<uint32_t>(count)}, 0, 1, &bytes);
      for (size_t k = begin; k < begin + count; ++k) {
        const uint32_t number = static_cast<uint32_t>(list.ids[k]) + 1;
        for (int b = 0; b < ids.bytes(); ++b) bytes += static_cast<char>(number >> 8 * b);
      }
      if (ids.has_weights) Append(list.weights, begin, count, &bytes);
      if (ids.has_keys) Append(list.keys, begin, count, &bytes);
    }
  }
  return bytes;
}

void ExpectRows(const CompiledLayout& layout) {
  RowCompiler compiler(layout);
  for (const int rows : {9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 64}) {
    SCOPED_TRACE(rows);
    const features::FeatureBatch batch = MakeBatch(layout, rows);
    ASSERT_TRUE(compiler.Take(batch));
    for (int row = 0; row < rows; ++row) {
      constexpr int kAtOnce = 6;
      if (row % kAtOnce == 0) compiler.Compile(row, std::min(row + kAtOnce, rows));
      const std::string expected = ExpectedRow(layout, batch, row);
      ASSERT_EQ(compiler.GetSize(row), expected.size());
      ASSERT_EQ(compiler.GetFixed(row), expected.substr(0, layout.fixed_bytes())) << row;
      const std::string behind = "behind";
      std::string written = expected + std::string(RowCompiler::kSlack, '#') + behind;
      std::fill_n(written.begin(), expected.size(), '#');
      compiler.Write(row, written.data());
      ASSERT_EQ(written.substr(0, expected.size()), expected) << row;
      ASSERT_TRUE(written.ends_with(behind)) << row;
    }
  }
}

TEST(CompiledRowsTest, ColumnsOfAnyWidthsWithWeightsAndKeys) {
  CompiledLayout layout = {.label_width = 2, .has_weight = true, .dense = {3, 1}};
  layout.id_lists = {
      {.has_weights = true, .ids = 300},  // a weight ends the word
      {.ids = 3},
      {.ids = 255},
      {.ids = 256},
      {.ids = 70000},       // of 1, 1, 2 and 3 bytes
      {.ids = 20'000'000},  // of 4, which do not fit any more
      {.ids = kMostIds},    // fills its word
      {.has_weights = true, .has_keys = true, .ids = 1},
      {.is_list = true, .has_weights = true, .ids = 70000},
  };
  layout.id_lists.resize(layout.id_lists.size() + 9, {.ids = 2});  // 8 fit a word
  layout.id_lists.push_back({.is_list = true, .has_keys = true, .ids = 1});
  layout.id_lists.push_back({.has_keys = true, .ids = 1});
  ExpectRows(layout);
  std::erase_if(layout.id_lists, [](const CompiledLayout::Ids& ids) { return ids.is_list; });
  ExpectRows(layout);
  layout.id_lists.push_back({.ids = 3});
  ExpectRows(layout);
}

TEST(CompiledRowsTest, RowsOfOneKindOfColumn) {
  ExpectRows({.id_lists = {{.ids = 3}}});
  ExpectRows({.id_lists = {{.is_list = true, .ids = 3}}});
  ExpectRows({.label_width = 1, .dense = {2}});
}

TEST(CompiledRowsTest, IdsThatTheColumnDoesNotHaveAreRefused) {
  for (const int64_t ids : {int64_t{1}, int64_t{255}, int64_t{256}, int64_t{1} << 24, kMostIds}) {
    SCOPED_TRACE(ids);
    const CompiledLayout layout = {.id_lists = {{.ids = ids}}};
    const auto has = [&](int64_t id) {
      features::FeatureBatch batch;
      batch.rows = 6;
      batch.id_lists.emplace_back().ids = {0, 0, 0, 0, static_cast<int32_t>(id), -1};
      return HasLayout(batch, layout);
    };
    for (const int64_t id : {int64_t{-1}, int64_t{0}, ids - 1}) EXPECT_TRUE(has(id)) << id;
    for (const int64_t id : {ids, kMostIds, int64_t{-2}, int64_t{INT32_MIN}}) {
      EXPECT_FALSE(has(id)) << id;
    }
  }
}

}  // namespace
}  // namespace muster::train
