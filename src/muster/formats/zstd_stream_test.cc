#include "muster/formats/zstd_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "muster/formats/csv_test_util.h"

namespace muster::formats {
namespace {

using ::testing::HasSubstr;

std::string Compress(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string Text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += StrCat(i * 7919 % 10007, ",");
  return text;
}

absl::StatusOr<std::string> Unpack(const std::string& bytes, uint64_t offset = 0) {
  const auto stream = NewByteStream(StringFile(bytes), Compression::kZstd, offset);
  std::string text, block(10'000, '\0');
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, stream->Read(block.size(), block.data()));
    if (count == 0) return text;
    text.append(block, 0, count);
  }
}

TEST(ZstdStreamTest, ReadsWhatWasCompressed) {
  const std::string text = Text();
  EXPECT_EQ(*Unpack(Compress(text)), text);
  EXPECT_EQ(*Unpack(Compress(text), 777'777), text.substr(777'777));
  EXPECT_EQ(*Unpack(Compress("a") + Compress("") + Compress("bc")), "abc")
      << "several frames are one stream";
  EXPECT_EQ(*Unpack(Compress("")), "");
}

TEST(ZstdStreamTest, BrokenStreamsAreErrors) {
  const std::string whole = Compress(Text());
  const absl::Status cut = Unpack(whole.substr(0, whole.size() / 2)).status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(cut.message(), HasSubstr("the ZSTD stream is cut: it ends at byte"));
  const absl::Status followed = Unpack(whole + "garbage").status();
  EXPECT_THAT(followed.message(), HasSubstr("the ZSTD stream is broken"));
}

}  // namespace
}  // namespace muster::formats
