#include "muster/files/hdfs/block_places.h"

#include <gtest/gtest.h>

namespace muster::files {
namespace {

TEST(BlockPlacesTest, ABlockIsReadFromWhereItWasReadBefore) {
  BlockPlaces places(100);
  EXPECT_FALSE(places.Find(0, 10).has_value());
  places.Keep(30, {.url = "http://a:1", .target = "/x?op=OPEN&offset=30&length=5&token=t"});
  ASSERT_TRUE(places.Find(99, 10).has_value());
  EXPECT_EQ(places.Find(99, 10)->url, "http://a:1");
  EXPECT_EQ(places.Find(99, 10)->target, "/x?offset=99&length=10&op=OPEN&token=t");
  EXPECT_FALSE(places.Find(100, 10).has_value()) << "another block";
  places.Forget(5);
  EXPECT_FALSE(places.Find(30, 10).has_value());
}

TEST(BlockPlacesTest, AFileWithoutBlocksIsOne) {
  BlockPlaces places(0);
  places.Keep(30, {.url = "http://a:1", .target = "/x"});
  EXPECT_EQ(places.Find(uint64_t{1} << 40, 1)->target, "/x?offset=1099511627776&length=1");
}

}  // namespace
}  // namespace muster::files
