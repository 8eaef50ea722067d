#include "muster/control/job_access.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::control {
namespace {

using ::testing::HasSubstr;

TEST(ListenPlaceTest, PrintsWhatItWasParsedFrom) {
  for (const char* const text : {"127.0.0.1:0", "127.0.0.1:7000", "[::1]:65535"}) {
    const auto place = ParseListenPlace(text, false);
    ASSERT_TRUE(place.ok()) << place.status();
    EXPECT_EQ(PrintListenPlace(*place), text);
  }
  EXPECT_EQ(*ParseListenPlace("::1", false), (ListenPlace{.address = "::1"}));
  EXPECT_EQ(*ParseListenPlace("[::]:1", true), (ListenPlace{"::", 1, true}));
}

TEST(ListenPlaceTest, SaysWhatIsNone) {
  for (const char* const text : {"", "host:1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                                 "127.0.0.1:1x", "[::1", "[::1]7", "1.2.3"}) {
    const auto place = ParseListenPlace(text, true);
    EXPECT_EQ(place.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ListenPlaceTest, BeyondLoopbackOnlyWithTls) {
  for (const char* const text : {"0.0.0.0", "10.1.2.3:7000", "::", "[fd00::1]:1"}) {
    const auto place = ParseListenPlace(text, false);
    EXPECT_EQ(place.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(place.status().message(), HasSubstr("muster certs")) << text;
    EXPECT_TRUE(ParseListenPlace(text, true).ok()) << text;
  }
}

TEST(ListenPlaceTest, ProgramsOfThisMachineReachAllInterfacesByLoopback) {
  EXPECT_EQ(LocalUrl(*ParseListenPlace("0.0.0.0", true), 7), "https://127.0.0.1:7");
  EXPECT_EQ(LocalUrl(*ParseListenPlace("::", true), 7), "https://[::1]:7");
  EXPECT_EQ(LocalUrl(*ParseListenPlace("10.1.2.3", true), 7), "https://10.1.2.3:7");
  EXPECT_EQ(LocalUrl({}, 7), "http://127.0.0.1:7");
}

}  // namespace
}  // namespace muster::control
