#include "muster/formats/column_chunk.h"

#include <gmock/gmock.h>

#include "muster/base/status.h"

namespace muster::formats {
namespace {

using ::testing::HasSubstr;

TEST(ColumnChunkTest, ReferencesOutsideTheBuffersAreRefused) {
  const std::vector<int32_t> down = {0, 3, 2}, past = {0, 1, 9}, negative = {-1, 0, 0},
                             few = {0, 1};
  const std::string eight(8, 'x');
  const auto broken = [](BufferType type, bool list, ColumnBuffers buffers) {
    const absl::Status status =
        CheckColumnChunk({{"x", type, list}}, {.rows = 2, .columns = {buffers}});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(ToStd(status.message()));
  };
  EXPECT_THAT(broken(BufferType::kInt64, false, {.values = eight}),
              HasSubstr("column 'x': 2 values need 16 bytes, but there are 8"));
  EXPECT_THAT(broken(BufferType::kBool, false, {}), HasSubstr("need 1 bytes"));
  for (const auto& offsets : {down, negative}) {
    EXPECT_THAT(broken(BufferType::kString, false, {.values = eight, .string_offsets = offsets}),
                HasSubstr("the offsets of strings descend"));
    EXPECT_THAT(broken(BufferType::kInt8, true, {.list_offsets = offsets, .values = eight}),
                HasSubstr("the offsets of lists descend"));
  }
  EXPECT_THAT(broken(BufferType::kString, false, {.values = eight, .string_offsets = past}),
              HasSubstr("need 9 bytes"));
  EXPECT_THAT(broken(BufferType::kInt8, true, {.list_offsets = past, .values = eight}),
              HasSubstr("9 values need 9 bytes"));
  EXPECT_THAT(broken(BufferType::kInt8, true, {.list_offsets = few, .values = eight}),
              HasSubstr("2 offsets of lists, not 3"));
  EXPECT_THAT(broken(BufferType::kInt8, true,
                     {.list_offsets = past, .value_validity = "x", .values = std::string(9, 'x')}),
              HasSubstr("validity bits are missing for some of the 9 values"));
  EXPECT_EQ(CheckColumnChunk({}, {.rows = 2, .columns = {{}}}).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::formats
