#include "muster/net/transport/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net::transport {
namespace {

using testing::HasSubstr;

TEST(RefusalLogTest, TwoThousandRefusalsAreAFewLines) {
  RefusalLog log;
  std::vector<std::string> lines;
  for (int i = 0; i < 2000; ++i) {
    const auto said = log.Count(StrCat("tcp://10.0.0.7:", 30000 + i),
                                absl::DataLossError(StrCat("no handshake from port ", 30000 + i)));
    if (said) lines.emplace_back(ToStd(said->message()));
  }
  ASSERT_EQ(lines.size(), 8U);  // 1 to 5, 10, 100, 1000
  EXPECT_EQ(lines.front(), "no handshake from port 30000");
  EXPECT_THAT(lines.back(), HasSubstr("no handshake from port 30999"));
  EXPECT_THAT(lines.back(), HasSubstr("the 1000th of tcp://10.0.0.7"));
}

TEST(RefusalLogTest, AnotherHostOrCauseIsStillSaid) {
  RefusalLog log;
  const std::string loud = "tcp://10.0.0.7:1", quiet = "tcp://[fd00::1]:1";
  for (int i = 0; i < 1005; ++i) log.Count(loud, absl::DataLossError("garbage"));
  EXPECT_FALSE(log.Count(loud, absl::DataLossError("garbage")).has_value());
  EXPECT_EQ(log.Count(quiet, absl::DataLossError("garbage")), absl::DataLossError("garbage"));
  EXPECT_EQ(log.Count(loud, absl::UnauthenticatedError("another key")),
            absl::UnauthenticatedError("another key"));
}

TEST(RefusalLogTest, ManyHostsAreAFewLinesToo) {
  RefusalLog log;
  int lines = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string peer = StrCat("tcp://10.", i >> 16, ".", (i >> 8) % 256, ".", i % 256, ":9");
    if (log.Count(peer, absl::DataLossError("garbage"))) ++lines;
  }
  EXPECT_LT(lines, 100);
}

}  // namespace
}  // namespace muster::net::transport
