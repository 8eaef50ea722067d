#include "muster/data/spooled_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "muster/data/test_data.h"
#include "muster/formats/csv_test_util.h"

namespace muster::data {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kRowBytes = size_t{64} << 10;
constexpr size_t kRows = kMostBytesInMemory / kRowBytes + 1;

// Rows of many equal letters, of which a compressed file is small.
std::string MakeRow(size_t number) {
  return StrCat(number, ",", std::string(kRowBytes, static_cast<char>('a' + number % 26)));
}

class SpooledChunkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text = "n,x\n";
    for (size_t row = 0; row < kRows; ++row) text += MakeRow(row) + "\n";
    WriteText(*files_, "big.csv.gz", formats::Gzip(text));
    auto source = OpenSource(*files_, {.patterns = {"big.csv.gz"}});
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    ASSERT_EQ(source_->chunks().size(), 1U);
  }
  void TearDown() override { unsetenv("TMPDIR"); }

  // Returns the whole chunk, which must have all records.
  std::shared_ptr<const Chunk> Read() {
    auto whole = source_->Read(0);
    EXPECT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ((*whole)->records.size(), kRows);
    EXPECT_EQ((*whole)->offsets.size(), kRows);
    for (size_t row = 0; row < kRows; ++row) {
      EXPECT_TRUE((*whole)->records[row] == MakeRow(row)) << row;
      EXPECT_EQ((*whole)->Where(row), StrCat("big.csv.gz:", row + 2));
    }
    return *std::move(whole);
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  std::unique_ptr<RecordSource> source_;
};

TEST_F(SpooledChunkTest, ALargeCompressedFileIsNotHeldInMemory) {
  setenv("TMPDIR", ::testing::TempDir().c_str(), 1);
  const auto whole = Read();
  EXPECT_THAT(whole->bytes, IsEmpty());
  EXPECT_EQ(whole->memory.size(), 1U);
}

TEST_F(SpooledChunkTest, WithoutAFolderItIsHeldInMemory) {
  setenv("TMPDIR", "/nonexistent", 1);
  EXPECT_THAT(Read()->memory, IsEmpty());
}

// Pieces of which some have records that were left out.
class Pieces : public ChunkStream {
 public:
  explicit Pieces(std::vector<std::shared_ptr<const Chunk>> pieces) : pieces_(std::move(pieces)) {}
  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    if (next_ == pieces_.size()) return nullptr;
    return pieces_[next_++];
  }

 private:
  const std::vector<std::shared_ptr<const Chunk>> pieces_;
  size_t next_ = 0;
};

std::shared_ptr<const Chunk> MakePiece(const std::string& letters, std::vector<size_t> left_out) {
  auto piece = std::make_shared<Chunk>();
  piece->bytes = letters;
  for (size_t i = 0; i < letters.size(); ++i) {
    piece->records.push_back(std::string_view(piece->bytes).substr(i, 1));
    piece->offsets.push_back(static_cast<uint64_t>(letters[i]));
  }
  for (const size_t before : left_out) {
    piece->bad.emplace_back().number = before;
    piece->left_out.push_back(before);
  }
  return piece;
}

absl::StatusOr<std::shared_ptr<const Chunk>> Spool(const std::string& folder, uint64_t max_bad) {
  Pieces pieces(
      {MakePiece("ab", {1}), MakePiece("", {0}), MakePiece("cd", {2}), MakePiece("e", {})});
  return SpoolChunk(pieces, std::make_shared<Chunk>(), folder, max_bad);
}

TEST(SpoolChunkTest, RecordsAndThoseLeftOutAreCountedThroughAllPieces) {
  const auto whole = Spool(::testing::TempDir(), 9);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT((*whole)->records, ::testing::ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT((*whole)->left_out, ::testing::ElementsAre(1, 2, 4));
  EXPECT_EQ((*whole)->bad.size(), 3U);
  EXPECT_THAT((*whole)->offsets, ::testing::ElementsAre('a', 'b', 'c', 'd', 'e'));
}

TEST(SpoolChunkTest, ItEndsAfterOneBadRecordTooMany) {
  const auto whole = Spool(::testing::TempDir(), 1);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT((*whole)->records, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ((*whole)->bad.size(), 2U);
}

TEST(SpoolChunkTest, AFolderThatIsNotThereIsAnError) {
  const auto whole = Spool("/nonexistent", 0);
  EXPECT_THAT(whole.status().message(), HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace muster::data
