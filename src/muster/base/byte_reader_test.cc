#include "muster/base/byte_reader.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

enum class Color : uint16_t { kRed = 0x0201 };

TEST(ByteReaderTest, NumbersAreLittleEndianAtAnyAddress) {
  const std::string bytes("\x07\x01\x02\x03\x04\x01\x02\x00\x00\x80\x3f\xff", 12);
  ByteReader reader(bytes);
  uint8_t one = 0;
  uint32_t four = 0;
  Color color = {};
  float number = 0;
  int8_t last = 0;
  EXPECT_TRUE(reader.Read(&one) && reader.Read(&four) && reader.Read(&color) &&
              reader.Read(&number) && reader.Read(&last));
  EXPECT_EQ(one, 7);
  EXPECT_EQ(four, 0x04030201u);
  EXPECT_EQ(color, Color::kRed);
  EXPECT_EQ(number, 1.0f);
  EXPECT_EQ(last, -1);
  EXPECT_TRUE(reader.done());
}

TEST(ByteReaderTest, BytesAndArraysLieInTheMemory) {
  const std::vector<uint32_t> numbers = {1, 2, 3};
  ByteReader reader(std::as_bytes(std::span(numbers)));
  std::string_view bytes;
  ASSERT_TRUE(reader.ReadBytes(4, &bytes));
  EXPECT_EQ(bytes.data(), reinterpret_cast<const char*>(numbers.data()));
  std::span<const uint32_t> values;
  ASSERT_TRUE(reader.ReadArray(2, &values));
  EXPECT_EQ(values.data(), &numbers[1]);
  EXPECT_EQ(values.size(), 2u);
  EXPECT_TRUE(reader.done());
}

TEST(ByteReaderTest, WhatDoesNotFitIsNotReadAndNothingAfterIt) {
  const std::string bytes(7, '\x01');
  const auto check = [&](auto read) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      ByteReader reader(std::string_view(bytes).substr(0, size));
      EXPECT_FALSE(read(reader)) << size;
      EXPECT_FALSE(reader.ok());
      EXPECT_FALSE(reader.done());
      EXPECT_EQ(reader.left(), 0u);
      uint8_t number = 7;
      uint64_t varint = 7;
      std::string_view none = "none";
      std::span<const uint8_t> values;
      EXPECT_FALSE(reader.Read(&number) || reader.ReadVarint(&varint) ||
                   reader.ReadBytes(0, &none) || reader.ReadArray(0, &values) || reader.Skip(0) ||
                   reader.Fits(0, 1));
      EXPECT_EQ(number, 7);
      EXPECT_EQ(varint, 7u);
      EXPECT_EQ(none, "none");
    }
  };
  check([](ByteReader& reader) {
    uint64_t value = 7;
    const bool read = reader.Read(&value);
    EXPECT_EQ(value, 7u);
    return read;
  });
  check([](ByteReader& reader) { return reader.Skip(7); });
  check([](ByteReader& reader) { return reader.Skip(UINT64_MAX); });
  check([](ByteReader& reader) {
    std::span<const uint8_t> values;
    return reader.ReadArray(7, &values);
  });
  // Their bytes would be 8 modulo 2^64.
  check([](ByteReader& reader) {
    std::span<const uint32_t> values;
    return reader.ReadArray((uint64_t{1} << 62) + 2, &values);
  });
  check([](ByteReader& reader) { return reader.Fits(UINT64_MAX / 8 + 2, 8); });
}

TEST(ByteReaderTest, FitsReadsNothing) {
  ByteReader reader(std::string_view("12345678"));
  EXPECT_TRUE(reader.Fits(2, 4));
  EXPECT_TRUE(reader.Fits(0, 4));
  EXPECT_EQ(reader.left(), 8u);
  EXPECT_FALSE(reader.Fits(3, 3));
}

TEST(ByteReaderTest, NoBytesAreDoneFromTheStart) {
  for (const std::string_view none : {std::string_view(), std::string_view("")}) {
    ByteReader reader(none);
    EXPECT_TRUE(reader.ok() && reader.done());
    EXPECT_TRUE(reader.Skip(0));
    EXPECT_FALSE(reader.Skip(1));
  }
}

TEST(ByteReaderTest, VarintsOfEveryLength) {
  for (int bits = 0; bits < 64; ++bits) {
    const uint64_t value = (uint64_t{1} << bits) + (bits > 3 ? 5 : 0);
    std::string bytes;
    for (uint64_t rest = value;; rest >>= 7) {
      bytes.push_back(static_cast<char>(rest >= 0x80 ? rest | 0x80 : rest));
      if (rest < 0x80) break;
    }
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      uint64_t out = 7;
      EXPECT_FALSE(ByteReader(std::string_view(bytes).substr(0, cut)).ReadVarint(&out));
      EXPECT_EQ(out, 7u);
    }
    bytes += "rest";
    ByteReader reader(bytes);
    uint64_t out = 0;
    ASSERT_TRUE(reader.ReadVarint(&out));
    EXPECT_EQ(out, value);
    EXPECT_EQ(reader.left(), 4u);
  }
  uint64_t out = 0;
  EXPECT_FALSE(ByteReader(std::string(11, '\xff')).ReadVarint(&out));
}

}  // namespace
}  // namespace muster
