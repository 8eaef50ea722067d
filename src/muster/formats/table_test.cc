#include "muster/formats/table.h"

#include <gtest/gtest.h>

#include <map>

#include "muster/base/byte_reader.h"
#include "muster/base/random.h"
#include "muster/formats/table_coding.h"

namespace muster::formats {
namespace {

using Entries = std::map<std::string, std::string>;

std::string BuildTable(const Entries& entries, TableOptions options) {
  TableBuilder builder(options);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  return builder.Finish();
}

absl::StatusOr<Entries> ReadEntries(std::string_view bytes) {
  Entries entries;
  MUSTER_RETURN_IF_ERROR(
      ReadTable(bytes, "some.index", [&](std::string_view key, std::string_view value) {
        entries.emplace(key, value);
        return absl::OkStatus();
      }));
  return entries;
}

// Returns entries whose keys share prefixes, up to whole keys, and have bytes over 0x7f.
Entries RandomEntries(uint64_t seed, int count) {
  RandomStream random(seed, RandomPurpose::kSampleData, 0);
  Entries entries;
  while (static_cast<int>(entries.size()) < count) {
    std::string key(random.Below(12), 'a');
    for (char& c : key) c = "ab\xff\x00z"[random.Below(5)];
    entries[key] = std::string(random.Below(50), static_cast<char>(random.Below(256)));
  }
  return entries;
}

TEST(TableTest, ReadsWhatItBuilt) {
  for (const size_t block_size : {1, 40, 300, 4096, 262144}) {
    for (const int restart_interval : {1, 2, 16}) {
      for (const int count : {0, 1, 2, 17, 1000}) {
        const Entries entries = RandomEntries(block_size + count, count);
        const auto read = ReadEntries(BuildTable(entries, {block_size, restart_interval}));
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(*read, entries) << block_size << " " << restart_interval << " " << count;
      }
    }
  }
}

TEST(TableTest, AnErrorFromVisitEndsTheWalk) {
  const std::string table = BuildTable({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {});
  int visits = 0;
  const absl::Status status = ReadTable(table, "f", [&](std::string_view key, std::string_view) {
    ++visits;
    return key == "b" ? absl::AbortedError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::AbortedError("enough"));
  EXPECT_EQ(visits, 2);
}

// A flipped bit is an error or changes nothing, as in the footer's padding and in the empty
// meta-index.
TEST(TableTest, AFlippedBitIsFound) {
  const Entries entries = RandomEntries(3, 60);
  const std::string table = BuildTable(entries, {300, 16});
  int found = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string broken = table;
    broken[i] ^= 0x10;
    const auto read = ReadEntries(broken);
    if (read.ok()) {
      EXPECT_EQ(*read, entries) << "byte " << i;
    } else {
      ++found;
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << read.status();
      EXPECT_EQ(read.status().message().find("some.index: byte "), 0u) << read.status();
    }
  }
  EXPECT_GT(found, static_cast<int>(table.size()) - 60);
}

TEST(TableTest, ACutFileIsFound) {
  const std::string table = BuildTable(RandomEntries(4, 60), {300, 16});
  for (size_t size = 0; size < table.size(); ++size) {
    const auto read = ReadEntries(std::string_view(table).substr(0, size));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(TableTest, KeysOutOfOrderAreRefused) {
  TableBuilder builder({1, 16});
  builder.Add("b", "1");
  builder.Add("a", "2");
  EXPECT_EQ(ReadEntries(builder.Finish()).status().code(), absl::StatusCode::kDataLoss);
}

// 20,000 keys of 6 kB, from a file of 150 kB, would take 120 MB.
TEST(TableTest, PrefixesCannotFillTheMemory) {
  TableBuilder builder({size_t{1} << 30, 1 << 30});
  std::string key(6000, 'k');
  key += "aaaa";
  for (int i = 0; i < 20000; ++i) {
    for (int digit = 0, rest = i; digit < 4; ++digit, rest /= 26) {
      key[key.size() - 1 - digit] = static_cast<char>('a' + rest % 26);
    }
    builder.Add(key, "");
  }
  const auto read = ReadEntries(builder.Finish());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(read.status().message().find("more memory"), std::string::npos) << read.status();
}

TEST(TableCodingTest, VarintsOfEveryLength) {
  for (int bits = 0; bits < 64; ++bits) {
    const uint64_t value = (uint64_t{1} << bits) + (bits > 3 ? 5 : 0);
    std::string bytes;
    AppendVarint(&bytes, value);
    EXPECT_EQ(bytes.size(), static_cast<size_t>(bits / 7 + 1));
    ByteReader reader(bytes);
    uint64_t out = 0;
    ASSERT_TRUE(reader.ReadVarint(&out) && reader.done());
    EXPECT_EQ(out, value);
  }
}

}  // namespace
}  // namespace muster::formats
