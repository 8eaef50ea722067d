#include "muster/train/parameter_server/saved_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::train {
namespace {

using testing::HasSubstr;

ps::Variable Table(int64_t rows) {
  ps::Variable table = {.name = "t", .kind = ps::Variable::Kind::kTable, .rows = rows, .cols = 2};
  table.tensors = {"t"};
  if (rows == 0) table.growth = tables::Growth();
  return table;
}

// The columns of a table without slots: weights, keys, last_steps and the three of waiting keys.
ps::SavedTables Keys(int64_t rows, int64_t waiting) {
  return {.checksums = {1, 2, 3, 4, 5, 6}, .keys = {rows, waiting}};
}

TEST(SavedRowsReaderTest, TheKeysOfServersFollowEachOther) {
  const std::vector<ps::SavedTables> saved = {Keys(3, 0), Keys(0, 2), Keys(4, 1)};
  SavedRowsReader reader(saved);
  checkpoint::RowFiles files;
  ASSERT_TRUE(reader.AddKeys(Table(0), &files).ok());
  ASSERT_EQ(files.tensors.size(), 6u);
  const auto& weights = files.tensors[0];
  EXPECT_EQ(weights.name, "t");
  EXPECT_THAT(weights.shape, testing::ElementsAre(7, 2));
  ASSERT_EQ(weights.rows.size(), 2u);  // one server has none
  EXPECT_EQ(weights.rows[1].file, 3);
  EXPECT_EQ(weights.rows[1].first, 3);
  EXPECT_EQ(weights.rows[1].count, 4);
  const auto& keys = files.tensors[1];
  EXPECT_EQ(keys.name, "t/keys");
  EXPECT_EQ(keys.type, formats::DataType::kInt64);
  EXPECT_THAT(keys.shape, testing::ElementsAre(7));
  EXPECT_EQ(keys.rows[1].offset, 4 * 2 * sizeof(float));
  EXPECT_EQ(keys.rows[1].crc, 2u);
  EXPECT_THAT(files.tensors[3].shape, testing::ElementsAre(3));
}

TEST(SavedRowsReaderTest, ReportsThatDoNotFitNameTheirServer) {
  const ps::Variable table = Table(0);
  std::vector<ps::SavedTables> wrong = {Keys(3, 0),
                                        Keys(-1, 0),
                                        Keys(1, int64_t{1} << 40),
                                        {.checksums = {1, 2, 3, 4, 5, 6}, .keys = {1}}};
  for (size_t i = 1; i < wrong.size(); ++i) {
    const std::vector<ps::SavedTables> saved = {wrong[0], wrong[i]};
    checkpoint::RowFiles files;
    const absl::Status refused = SavedRowsReader(saved).AddKeys(table, &files);
    EXPECT_TRUE(absl::IsAborted(refused)) << i;
    EXPECT_THAT(ToStd(refused.message()), HasSubstr("ps-1 does not say how many keys of t"));
  }
  const std::vector<ps::SavedTables> few = {{.checksums = {1, 2}, .keys = {1, 1}}};
  checkpoint::RowFiles files;
  const absl::Status refused = SavedRowsReader(few).AddKeys(table, &files);
  EXPECT_THAT(ToStd(refused.message()), HasSubstr("ps-0 has saved too few rows"));
  const std::vector<ps::SavedTables> none = {{}};
  const std::vector<ps::Variable> fixed = {Table(1 << 20)};
  const ps::Placement placement(fixed, 1);
  EXPECT_TRUE(absl::IsAborted(SavedRowsReader(none).AddRows(fixed[0], 0, placement, &files)));
}

}  // namespace
}  // namespace muster::train
