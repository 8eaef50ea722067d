#include "muster/launch/yarn/aggregated_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>

#include "muster/formats/compression.h"
#include "muster/io/memory_file_system.h"

namespace muster::launch::yarn {
namespace {

// Writes what Java's DataOutput and TFile's Utils write.
void PutBig(uint64_t value, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) *out += static_cast<char>(value >> (8 * i));
}
void PutLong(int64_t value, std::string* out) {
  if (value >= -32 && value < 128) {
    *out += static_cast<char>(value);
  } else if (value >= -(20 << 8) && value < (20 << 8)) {
    *out += static_cast<char>((value >> 8) - 52);
    *out += static_cast<char>(value);
  } else if (value >= -(16 << 16) && value < (16 << 16)) {
    *out += static_cast<char>((value >> 16) - 88);
    PutBig(static_cast<uint64_t>(value), 2, out);
  } else if (value >= -(8 << 24) && value < (8 << 24)) {
    *out += static_cast<char>((value >> 24) - 112);
    PutBig(static_cast<uint64_t>(value), 3, out);
  } else {
    *out += static_cast<char>(8 - 129);
    PutBig(static_cast<uint64_t>(value), 8, out);
  }
}
std::string Text(const std::string& text) {
  std::string out;
  PutLong(static_cast<int64_t>(text.size()), &out);
  return out + text;
}
std::string Utf(const std::string& text) {
  std::string out;
  PutBig(text.size(), 2, &out);
  return out + text;
}

std::string Compress(const std::string& bytes) {
  const auto files = io::NewMemoryFileSystem();
  auto file = files->OpenForWrite("/x");
  formats::Deflater deflater(formats::Compression::kZlib);
  EXPECT_TRUE(deflater.Write(bytes, file->get()).ok());
  EXPECT_TRUE(deflater.Finish(file->get()).ok());
  EXPECT_TRUE((*file)->Close().ok());
  return io::ReadFile(*files, "/x").value_or("");
}

using Files = std::vector<std::pair<std::string, std::string>>;

// A record whose value is written in two chunks.
std::string Record(const std::string& key, const Files& files) {
  std::string value;
  for (const auto& [name, bytes] : files) {
    value += Utf(name) + Utf(std::to_string(bytes.size())) + bytes;
  }
  const size_t first = value.size() / 2;
  std::string out = Text(Utf(key));
  if (first > 0) PutLong(-static_cast<int64_t>(first), &out);
  out += value.substr(0, first);
  PutLong(static_cast<int64_t>(value.size() - first), &out);
  return out + value.substr(first);
}

std::string AggregatedFile(const std::vector<std::string>& blocks, const std::string& compression) {
  std::string out, index = Text(compression);
  const auto put = [&](const std::string& raw, std::string* to) {
    const std::string packed = compression == "gz" ? Compress(raw) : raw;
    PutLong(static_cast<int64_t>(out.size()), to);
    PutLong(static_cast<int64_t>(packed.size()), to);
    PutLong(static_cast<int64_t>(raw.size()), to);
    out += packed;
  };
  PutLong(static_cast<int64_t>(blocks.size()), &index);
  for (const std::string& block : blocks) put(block, &index);
  std::string meta;
  PutLong(1, &meta);
  meta += Text("data:BCFile.index") + Text(compression);
  put(index, &meta);
  const uint64_t at = out.size();
  out += meta;
  PutBig(at, 8, &out);
  PutBig(0x10000, 4, &out);
  return out + std::string("\xd1\x11\xd3\x68\x91\xb5\xd7\xb6\x39\xdf\x41\x40\x92\xba\xe1\x50", 16);
}

const std::string kLong(100'000, 'x');

std::vector<std::string> TwoBlocks() {
  return {
      Record("VERSION", {}) + Record("container_1_0001_01_000002",
                                     {{"stderr", ""}, {"stdout", kLong}, {"task", "worker-0 1\n"}}),
      Record("container_1_0001_01_000003", {{"stdout", "second\n"}, {"task", "worker-0 4\n"}}) +
          Record("container_1_0001_01_000004", {{"stdout", "other\n"}, {"task", "worker-00 2\n"}})};
}

class AggregatedLog : public testing::TestWithParam<const char*> {};

TEST_P(AggregatedLog, HasEachContainersFiles) {
  const auto read = ParseAggregatedLog(AggregatedFile(TwoBlocks(), GetParam()), "log");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].container, "container_1_0001_01_000002");
  EXPECT_EQ((*read)[0].files.at("stdout"), kLong);
  EXPECT_EQ((*read)[0].files.at("stderr"), "");
  EXPECT_EQ((*read)[1].files.at("stdout"), "second\n");
}

TEST_P(AggregatedLog, EveryPartOfAFileIsRefusedOrRead) {
  const std::string whole =
      AggregatedFile({Record("container_1", {{"stdout", "a\n"}})}, GetParam());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ParseAggregatedLog(whole.substr(0, size), "log").status()));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    (void)ParseAggregatedLog(damaged, "log");  // must not crash
  }
}

INSTANTIATE_TEST_SUITE_P(Compressions, AggregatedLog, testing::Values("none", "gz"));

TEST(AggregatedLogTest, AChunkOfTheLeastSizeThereIsIsRefused) {
  std::string record = Text(Utf("container_1"));
  PutLong(std::numeric_limits<int64_t>::min(), &record);
  const auto read = ParseAggregatedLog(AggregatedFile({record}, "none"), "log");
  EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
}

TEST(AggregatedLogTest, NamesAnUnknownCompression) {
  const auto read = ParseAggregatedLog(AggregatedFile({""}, "lzo"), "log");
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
}

TEST(AggregatedLogTest, FindsTheOutputsOfATaskByIncarnation) {
  const auto files = io::NewMemoryFileSystem();
  const std::string folder = "/logs/me/bucket-logs-tfile/0001/application_1_0001";
  const AggregatedPlace place = {.folder = "/logs", .user = "me"};
  ASSERT_TRUE(files->MakeFolders(folder).ok());
  EXPECT_TRUE(absl::IsNotFound(
      ReadAggregatedLog(*files, place, "application_1_0001", "worker-0").status()));
  const std::vector<std::string> blocks = TwoBlocks();
  ASSERT_TRUE(
      io::WriteFileAtomically(*files, folder + "/n1_8041", AggregatedFile({blocks[1]}, "none"))
          .ok());
  ASSERT_TRUE(
      io::WriteFileAtomically(*files, folder + "/n2_8041", AggregatedFile({blocks[0]}, "none"))
          .ok());
  const auto read = ReadAggregatedLog(*files, place, "application_1_0001", "worker-0");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].bytes, kLong);
  EXPECT_EQ((*read)[1].bytes, "second\n");
  EXPECT_EQ((*read)[1].incarnation, 4);
  ASSERT_TRUE(io::WriteFileAtomically(*files, folder + "/n3_8041.tmp", "").ok());
  EXPECT_TRUE(absl::IsUnavailable(
      ReadAggregatedLog(*files, place, "application_1_0001", "worker-0").status()));
}

}  // namespace
}  // namespace muster::launch::yarn
