#include "muster/formats/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/csv_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BigEndian32(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string IdxHead(char type, const std::vector<uint32_t>& sizes) {
  std::string head = {0, 0, type, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) head += BigEndian32(size);
  return head;
}

// Returns three images of 2 x 2 bytes.
std::string Images() { return IdxHead(0x08, {3, 2, 2}) + "abcdefghijkl"; }

struct Outcome {
  std::vector<std::string> items;
  absl::Status status;
};

Outcome ReadAll(const std::string& bytes) {
  Outcome outcome;
  auto reader = IdxReader::Open(StringFile(bytes));
  outcome.status = reader.status();
  while (outcome.status.ok()) {
    std::string_view item;
    const absl::StatusOr<bool> more = (*reader)->Next(&item);
    outcome.status = more.status();
    if (!more.ok() || !*more) break;
    outcome.items.emplace_back(item);
  }
  return outcome;
}

std::string GetFailure(const std::string& bytes) {
  const Outcome outcome = ReadAll(bytes);
  EXPECT_TRUE(absl::IsDataLoss(outcome.status)) << outcome.status;
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("text.csv: "));
  return std::string(outcome.status.message());
}

TEST(IdxTest, ImagesPlainAndGzip) {
  for (const std::string& bytes : {Images(), Gzip(Images())}) {
    const auto reader = IdxReader::Open(StringFile(bytes));
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->type(), IdxType::kUint8);
    EXPECT_EQ((*reader)->items(), 3u);
    EXPECT_EQ((*reader)->item_bytes(), 4u);
    EXPECT_THAT((*reader)->shape(), ElementsAre(2, 2));
    EXPECT_THAT(ReadAll(bytes).items, ElementsAre("abcd", "efgh", "ijkl"));
  }
}

TEST(IdxTest, ElementsAreConvertedToLittleEndian) {
  const auto integer = [](char type, const std::string& element) {
    const auto reader = *IdxReader::Open(StringFile(IdxHead(type, {1}) + element));
    std::string_view item;
    EXPECT_TRUE(*reader->Next(&item));
    EXPECT_TRUE(IsIdxInteger(reader->type()));
    return IdxInteger(reader->type(), item);
  };
  EXPECT_EQ(integer(0x08, "\xfe"), 254);
  EXPECT_EQ(integer(0x09, "\xfe"), -2);
  EXPECT_EQ(integer(0x0B, "\xff\x01"), -255);
  EXPECT_EQ(integer(0x0C, "\x01\x02\x03\x04"), 0x01020304);
  const Outcome floats = ReadAll(IdxHead(0x0D, {1, 2}) + "\x3f\x80" + std::string(2, '\0') +
                                 "\xc0\x20" + std::string(2, '\0'));
  ASSERT_TRUE(floats.status.ok()) << floats.status;
  float values[2];
  std::memcpy(values, floats.items.at(0).data(), sizeof values);
  EXPECT_THAT(values, ElementsAre(1.0F, -2.5F));
  const Outcome doubles = ReadAll(IdxHead(0x0E, {1}) + "\x3f\xf8" + std::string(6, '\0'));
  ASSERT_EQ(doubles.items.size(), 1u);
  double value;
  std::memcpy(&value, doubles.items[0].data(), sizeof value);
  EXPECT_EQ(value, 1.5);
  EXPECT_FALSE(IsIdxInteger(IdxType::kFloat64));
}

TEST(IdxTest, TypesHaveNamesAndSizes) {
  EXPECT_EQ(IdxTypeName(IdxType::kInt16), "int16");
  EXPECT_EQ(IdxTypeBytes(IdxType::kFloat64), 8u);
  EXPECT_EQ(IdxTypeName(static_cast<IdxType>(0x0A)), "unknown");
}

TEST(IdxTest, LargeItemsComeInPieces) {
  const std::string pixels(700'000, 'p');
  const Outcome outcome = ReadAll(Gzip(IdxHead(0x08, {2, 700, 1000}) + pixels + pixels));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.items, ElementsAre(pixels, pixels));
}

TEST(IdxTest, NoItems) {
  const Outcome outcome = ReadAll(IdxHead(0x08, {0, 28, 28}));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.items, ElementsAre());
}

TEST(IdxTest, EveryCutIsFound) {
  const std::string whole = Images();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(GetFailure(whole.substr(0, size)), HasSubstr("it is cut at byte")) << size;
  }
  EXPECT_THAT(GetFailure(whole.substr(0, 21)), HasSubstr("at byte 21, in item 1 of 3"));
  EXPECT_THAT(GetFailure(whole + "m"), HasSubstr("bytes follow after the last of its 3 items"));
  const std::string packed = Gzip(whole);
  EXPECT_THAT(GetFailure(packed.substr(0, packed.size() - 9)), HasSubstr("GZIP stream is cut"));
}

TEST(IdxTest, InvalidHeadersAreRefused) {
  EXPECT_THAT(GetFailure("PNG and more"), HasSubstr("not an IDX file"));
  EXPECT_THAT(GetFailure(IdxHead(0x0A, {1}) + "a"), HasSubstr("not an IDX file"));
  EXPECT_THAT(GetFailure(IdxHead(0x08, {})), HasSubstr("it has 0 dimensions"));
  EXPECT_THAT(GetFailure(IdxHead(0x08, std::vector<uint32_t>(17, 1))), HasSubstr("17 dimensions"));
  EXPECT_THAT(GetFailure(IdxHead(0x08, {1, 2, 0})), HasSubstr("its dimension 3 is 0"));
  // A file with four thousand million items must be reported as cut, without taking memory for
  // them.
  EXPECT_THAT(GetFailure(IdxHead(0x0E, {~0U, 1 << 20, 16}) + "a"),
              HasSubstr("item 0 of 4294967295"));
  EXPECT_THAT(GetFailure(IdxHead(0x08, {1, 1 << 20, 1 << 20})), HasSubstr("more than 268435456"));
  EXPECT_THAT(GetFailure(IdxHead(0x0E, {1, ~0U, ~0U, ~0U})), HasSubstr("more than 268435456"));
}

TEST(IdxTest, AFailureIsReturnedAgain) {
  const auto reader = *IdxReader::Open(StringFile(Images().substr(0, 18)));
  std::string_view item;
  EXPECT_FALSE(reader->Next(&item).ok());
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(&item).status()));
}

TEST(IdxTest, AFileThatCannotBeRead) {
  const auto memory = io::NewMemoryFileSystem();
  ASSERT_TRUE(io::WriteFileAtomically(*memory, "images", Images()).ok());
  io::FaultFileSystem faulty(*memory);
  faulty.FailNth(io::FileOperation::kRead, 2, absl::UnavailableError("gone"));
  const auto reader = IdxReader::Open(*faulty.OpenForRead("images"));
  EXPECT_TRUE(absl::IsUnavailable(reader.status())) << reader.status();
}

}  // namespace
}  // namespace muster::formats
