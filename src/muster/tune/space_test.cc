#include "muster/tune/space.h"

#include <map>

#include "muster/tune/sampler.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& yaml) {
  const auto reader = formats::YamlReader::Parse(yaml, "search.yaml");
  ParseSpace(*reader);
  return std::string(ToStd(reader->status().message()));
}

TEST(SpaceTest, DrawsAreWithinTheSpaceAndDependOnSeedTrialAndNameAlone) {
  const Space space = TestSpace(
      "rate: {loguniform: [0.001, 10]}\n"
      "size: {int: [10, 35], step: 10}\n"
      "units: {choice: [[64, 32], [8]]}\n"
      "depth: {int: [1, 3], when: {units: [[8]]}}\n");
  std::map<double, int> sizes;
  int small = 0, absent = 0;
  for (int64_t trial = 0; trial < 3000; ++trial) {
    const Point point = DrawPoint(space, 5, trial);
    ASSERT_GE(point[0], 0.001);
    ASSERT_LE(point[0], 10);
    small += point[0] < 0.1 ? 1 : 0;
    ++sizes[point[1]];
    ASSERT_EQ(IsAbsent(point[3]), point[2] == 0);
    absent += IsAbsent(point[3]) ? 1 : 0;
  }
  EXPECT_NEAR(small, 1500, 150);
  EXPECT_NEAR(absent, 1500, 150);
  ASSERT_EQ(sizes.size(), 3U);
  for (const auto& [size, count] : sizes) EXPECT_NEAR(count, 1000, 150) << size;
  // A parameter more does not change the others.
  const Space larger = TestSpace(
      "other: {uniform: [0, 1]}\n"
      "rate: {loguniform: [0.001, 10]}\n");
  EXPECT_EQ(DrawPoint(larger, 5, 8)[1], DrawPoint(space, 5, 8)[0]);
  EXPECT_NE(DrawPoint(space, 5, 8)[0], DrawPoint(space, 6, 8)[0]);
  EXPECT_NE(DrawPoint(space, 5, 8)[0], DrawPoint(space, 5, 9)[0]);
}

TEST(SpaceTest, PointsAreWrittenAsJsonAndReadBack) {
  const Space space = TestStudySpec().space;
  for (int64_t trial = 0; trial < 50; ++trial) {
    const Point point = DrawPoint(space, 1, trial);
    const auto read = ParsePoint(space, Json::parse(PointJson(space, point).dump()));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(PointJson(space, *read), PointJson(space, point));
    EXPECT_EQ((*read)[0], point[0]);
    EXPECT_EQ((*read)[1], point[1]);
  }
  EXPECT_FALSE(ParsePoint(space, {{"z", 1}}).ok());
  EXPECT_FALSE(ParsePoint(space, {{"x", 6}}).ok());
  EXPECT_FALSE(ParsePoint(space, {{"kind", "c"}}).ok());
}

TEST(SpaceTest, WrongSpacesAreRefused) {
  EXPECT_THAT(ErrorOf("x: {normal: [0, 1]}"), HasSubstr("must have one of choice"));
  EXPECT_THAT(ErrorOf("x: {uniform: [1, 0]}"), HasSubstr("must be below the second"));
  EXPECT_THAT(ErrorOf("x: {loguniform: [0, 1]}"), HasSubstr("must begin above 0"));
  EXPECT_THAT(ErrorOf("x: {uniform: [0, 1], when: {y: 1}}"), HasSubstr("'y' is no choice"));
  EXPECT_THAT(ErrorOf("y: {choice: [1]}\nx: {uniform: [0, 1], when: {y: 2}}"),
              HasSubstr("is no value that 'y' may have"));
  EXPECT_THAT(ErrorOf("x: 3"), HasSubstr("must be a map"));
  EXPECT_THAT(ErrorOf("x: {int: [0, 1], setp: 2}"), HasSubstr("did you mean 'step'"));
}

}  // namespace
}  // namespace muster::tune
