#include "muster/formats/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "muster/formats/image_test_util.h"

namespace muster::formats {
namespace {

using ::testing::HasSubstr;

struct ImageFile {
  const char* name;
  std::string bytes;
};

class ImageFileTest : public testing::TestWithParam<ImageFile> {};

INSTANTIATE_TEST_SUITE_P(Formats, ImageFileTest,
                         testing::Values(ImageFile{"png", TestPng(28, 300)},
                                         ImageFile{"jpeg", TestJpeg(28, 300)}),
                         [](const auto& file) { return file.param.name; });

TEST_P(ImageFileTest, ItsSizeIsInItsHeader) {
  const auto size = CheckImage(GetParam().bytes);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->height, 28);
  EXPECT_EQ(size->width, 300);
}

TEST_P(ImageFileTest, EveryCutIsFound) {
  const std::string& bytes = GetParam().bytes;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(CheckImage(bytes.substr(0, size)).status().code(), absl::StatusCode::kInvalidArgument)
        << size;
  }
  EXPECT_THAT(CheckImage(bytes.substr(0, bytes.size() - 1)).status().message(),
              HasSubstr("it is cut at byte"));
  EXPECT_TRUE(CheckImage(bytes + "what follows").ok());
}

TEST(PngTest, AChangedByteIsFoundExceptInWhatDecodersSkip) {
  const std::string bytes = TestPng(28, 28);
  const size_t comment = bytes.find("Comment");
  const size_t type = bytes.find("tEXt"), end = comment + 7 + 4;  // including its checksum
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const bool skipped = i >= type && i < end;
    EXPECT_EQ(CheckImage(changed).ok(), skipped) << i;
  }
}

TEST(PngTest, MissingPartsAreReported) {
  const std::string signature = "\x89PNG\r\n\x1a\n";
  const std::string header = PngChunk("IHDR", std::string(13, '\0'));
  const std::string end = PngChunk("IEND", "");
  EXPECT_THAT(CheckImage(signature + end).status().message(), HasSubstr("begin with its header"));
  EXPECT_THAT(CheckImage(signature + PngChunk("IHDR", "short") + end).status().message(),
              HasSubstr("begin with its header"));
  EXPECT_THAT(CheckImage(signature + header + end).status().message(), HasSubstr("no pixels"));
}

TEST(JpegTest, MissingPartsAreReported) {
  const std::string begin = "\xff\xd8", end = "\xff\xd9";
  EXPECT_THAT(CheckImage(begin + end).status().message(), HasSubstr("no pixels"));
  EXPECT_THAT(CheckImage(begin + JpegSegment(0xda, "scan") + end).status().message(),
              HasSubstr("no pixels"));
  EXPECT_THAT(CheckImage(begin + JpegSegment(0xc0, "short") + end).status().message(),
              HasSubstr("a segment of 7 bytes"));
}

TEST(CheckImageTest, OtherBytesAreRefused) {
  EXPECT_THAT(CheckImage("GIF89a").status().message(), HasSubstr("neither a PNG nor a JPEG"));
  EXPECT_THAT(CheckImage("").status().message(), HasSubstr("no bytes"));
}

}  // namespace
}  // namespace muster::formats
