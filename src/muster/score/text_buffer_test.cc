#include "muster/score/text_buffer.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::score {
namespace {

TEST(TextBufferTest, PiecesOfEveryLengthAreAppended) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP";
  TextBuffer buffer;
  std::string expected;
  for (int round = 0; round < 20; ++round) {
    for (size_t size = 0; size <= letters.size(); ++size) {
      const std::string piece = letters.substr(letters.size() - size);
      buffer.Append(piece);
      buffer.Append('|');
      expected += piece + "|";
    }
  }
  EXPECT_EQ(buffer.text(), expected);
  EXPECT_EQ(buffer.size(), expected.size());
  buffer.Clear();
  EXPECT_EQ(buffer.text(), "");
  buffer.Append("next");
  EXPECT_EQ(buffer.text(), "next");
}

TEST(TextBufferTest, NumbersHaveTheShortestDigits) {
  TextBuffer buffer;
  buffer.AppendNumber(int64_t{-9223372036854775807 - 1});
  for (const float value : {0.1f, -2.0f, 1e-20f, 16777216.0f}) {
    buffer.Append(' ');
    buffer.AppendNumber(value);
  }
  EXPECT_EQ(buffer.text(), "-9223372036854775808 0.1 -2 1e-20 16777216");
}

}  // namespace
}  // namespace muster::score
