#include "muster/ps/server/key_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "muster/base/crc32c.h"
#include "muster/io/memory_file_system.h"
#include "muster/tables/dynamic_table_columns.h"
#include "muster/tables/key_order.h"

namespace muster::ps {
namespace {

using testing::HasSubstr;
using ColumnKind = tables::DynamicTableColumn::Kind;

constexpr int64_t kCols = 3;

// A server's table that grows, as variable 0.
class OneTable : public TableState {
 public:
  explicit OneTable(const Variable& variable) : table_(variable.dynamic_table_spec(), 1) {}

  absl::Status Fetch(const Slice&, std::span<float>) override { return absl::InternalError("no"); }
  absl::Status ReadKeys(uint32_t, const ReadTable& read) override {
    read(table_);
    return absl::OkStatus();
  }
  absl::Status Load(const Slice& slice) override {
    const std::span<float> values = table_.mutable_values(slice.slot);
    EXPECT_LE(slice.first + slice.count, std::ssize(values));
    std::ranges::copy(slice.values, values.begin() + slice.first);
    return absl::OkStatus();
  }
  absl::Status LoadKeys(const KeySlice& slice) override {
    return table_.Add({.keys = slice.keys,
                       .counts = slice.counts,
                       .last_steps = slice.last_steps,
                       .values = {slice.values.begin(), slice.values.end()}});
  }
  tables::DynamicTable& table() { return table_; }

 private:
  tables::DynamicTable table_;
};

class KeyFilesTest : public testing::Test {
 protected:
  KeyFilesTest() : files_(io::NewMemoryFileSystem()) {
    optimizer_ = optim::NewOptimizer({.kind = "adam"}).value();
    table_.optimizer = optimizer_.get();
  }

  // Keys 1000 j for j < rows, then `waiting` further ones, that are told apart by their values.
  static tables::DynamicTableEntries Entry(int64_t j, bool waits) {
    tables::DynamicTableEntries entry = {
        .keys = {1000 * j}, .counts = {waits ? j : 0}, .last_steps = {7 * j}};
    for (int i = 0; i < 3 * kCols && !waits; ++i) {
      entry.values.push_back(static_cast<float>(100 * j + i));
    }
    return entry;
  }

  // Writes a checkpoint of such keys, in the order of their numbers; `spoil` may change a column.
  using Spoil = std::function<void(ColumnKind kind, int slot, std::string* bytes)>;
  void WriteCheckpoint(int64_t rows, int64_t waiting, const Spoil& spoil = nullptr) {
    auto writer = formats::BundleWriter::Create(*files_, "ckpt").value();
    for (const auto& column : tables::GetDynamicTableColumns(table_.tensors, kCols)) {
      std::string bytes;
      const int64_t first = column.is_of_waiting() ? rows : 0;
      const int64_t end = column.is_of_waiting() ? rows + waiting : rows;
      for (int64_t j = first; j < end; ++j) {
        const auto entry = Entry(j, column.is_of_waiting());
        const auto append = [&](const auto* values, size_t n) {
          bytes.append(reinterpret_cast<const char*>(values), n * sizeof *values);
        };
        switch (column.kind) {
          case ColumnKind::kValues:
            append(entry.values.data() + (1 + column.slot) * kCols, kCols);
            break;
          case ColumnKind::kKeys:
          case ColumnKind::kWaitingKeys:
            append(entry.keys.data(), 1);
            break;
          case ColumnKind::kWaitingCounts:
            append(entry.counts.data(), 1);
            break;
          default:
            append(entry.last_steps.data(), 1);
        }
      }
      if (spoil) spoil(column.kind, column.slot, &bytes);
      std::vector<int64_t> shape = {static_cast<int64_t>(bytes.size() / column.bytes_of_key())};
      if (column.cols > 0) shape.push_back(column.cols);
      const auto type = column.cols > 0 ? formats::DataType::kFloat : formats::DataType::kInt64;
      ASSERT_TRUE(writer->Add(column.name, type, shape, bytes).ok());
    }
    ASSERT_TRUE(writer->Finish().ok());
  }

  absl::Status LoadPart(int server, int servers, OneTable* state) {
    const auto bundle = formats::BundleReader::Open(*files_, "ckpt").value();
    return LoadKeys(table_, 0, server, servers, *bundle, "ckpt", *state);
  }

  static void ExpectEntries(OneTable& state, int64_t rows, std::map<int64_t, int>* found) {
    const auto entries = state.table().Entries(0, state.table().size());
    size_t values = 0;
    for (size_t i = 0; i < entries.keys.size(); ++i) {
      const int64_t j = entries.keys[i] / 1000;
      ++(*found)[j];
      const auto wanted = Entry(j, j >= rows);
      EXPECT_EQ(entries.counts[i], wanted.counts.front());
      EXPECT_EQ(entries.last_steps[i], wanted.last_steps.front());
      for (const float value : wanted.values) EXPECT_EQ(entries.values[values++], value);
    }
    EXPECT_EQ(values, entries.values.size());
  }

  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Variable table_ = {.name = "t",
                     .kind = Variable::Kind::kTable,
                     .cols = kCols,
                     .growth = tables::Growth(),
                     .tensors = {"t", "t/m", "t/v"}};
};

// As checkpoints had them when keys were sorted by their numbers.
TEST_F(KeyFilesTest, EachKeyOfACheckpointInAnyOrderIsOnOneServer) {
  for (const int64_t rows : {0, 1, 40'000}) {
    WriteCheckpoint(rows, rows / 2);
    for (const int servers : {1, 3}) {
      std::map<int64_t, int> found;
      for (int server = 0; server < servers; ++server) {
        OneTable state(table_);
        const absl::Status loaded = LoadPart(server, servers, &state);
        ASSERT_TRUE(loaded.ok()) << loaded;
        ExpectEntries(state, rows, &found);
      }
      EXPECT_EQ(std::ssize(found), rows + rows / 2);
      for (const auto& [j, times] : found) EXPECT_EQ(times, 1) << j;
    }
  }
}

TEST_F(KeyFilesTest, SavedKeysAreInTheOrderOfACheckpoint) {
  WriteCheckpoint(1000, 10);
  OneTable state(table_);
  ASSERT_TRUE(LoadPart(0, 1, &state).ok());
  const auto file = files_->OpenForWrite("rows").value();
  SavedTables saved;
  ASSERT_TRUE(SaveKeys(table_, 0, state, *file, &saved).ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_THAT(saved.keys, testing::ElementsAre(1000, 10));
  const std::string bytes = io::ReadFile(*files_, "rows").value();
  ASSERT_EQ(saved.checksums.size(), 8u);
  size_t at = 0, column_at = 0;
  for (const auto& column : tables::GetDynamicTableColumns(table_.tensors, kCols)) {
    const size_t size = (column.is_of_waiting() ? 10 : 1000) * column.bytes_of_key();
    EXPECT_EQ(saved.checksums[column_at++], Crc32c(std::string_view(bytes).substr(at, size)));
    at += size;
  }
  ASSERT_EQ(bytes.size(), 1000 * (3 * kCols * sizeof(float) + 16) + 10 * 24);
  std::vector<int64_t> keys(1000);
  const size_t weights = 1000 * kCols * sizeof(float);
  std::memcpy(keys.data(), bytes.data() + weights, keys.size() * sizeof(int64_t));
  EXPECT_TRUE(std::ranges::is_sorted(keys, tables::IsKeyBefore));
  for (size_t i = 0; i < keys.size(); ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * kCols * sizeof(float), sizeof value);
    EXPECT_EQ(value, static_cast<float>(keys[i] / 10));
  }
}

// The chief has given up the save, and training continues.
TEST_F(KeyFilesTest, ATableThatChangesIsNotSaved) {
  class Changing : public OneTable {
   public:
    using OneTable::OneTable;
    absl::Status ReadKeys(uint32_t variable, const ReadTable& read) override {
      MUSTER_RETURN_IF_ERROR(OneTable::ReadKeys(variable, read));
      table().Clear();
      return absl::OkStatus();
    }
  };
  WriteCheckpoint(1000, 10);
  Changing state(table_);
  ASSERT_TRUE(LoadPart(0, 1, &state).ok());
  const auto file = files_->OpenForWrite("rows").value();
  SavedTables saved;
  const absl::Status status = SaveKeys(table_, 0, state, *file, &saved);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

TEST_F(KeyFilesTest, AKeyThatIsThereTwiceIsRefused) {
  WriteCheckpoint(10, 4, [](ColumnKind kind, int, std::string* bytes) {
    if (kind == ColumnKind::kKeys) bytes->replace(0, 8, bytes->substr(8, 8));
  });
  OneTable state(table_);
  const absl::Status refused = LoadPart(0, 1, &state);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(ToStd(refused.message()), HasSubstr("appears twice"));
}

TEST_F(KeyFilesTest, TensorsThatDoNotFitEachOtherAreRefused) {
  OneTable state(table_);
  for (const ColumnKind kind : {ColumnKind::kValues, ColumnKind::kKeys, ColumnKind::kLastSteps,
                                ColumnKind::kWaitingCounts}) {
    WriteCheckpoint(10, 4, [&](ColumnKind each, int, std::string* bytes) {
      if (each == kind) bytes->append(each == ColumnKind::kValues ? 12 : 8, '\0');
    });
    const absl::Status refused = LoadPart(0, 1, &state);
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(ToStd(refused.message()), HasSubstr("another number of keys"));
  }
  EXPECT_EQ(state.table().size(), 0);
  WriteCheckpoint(10, 4);
  table_.tensors = {"other", "t/m", "t/v"};
  const absl::Status other = LoadPart(0, 1, &state);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToStd(other.message()), HasSubstr("'other'"));
}

}  // namespace
}  // namespace muster::ps
