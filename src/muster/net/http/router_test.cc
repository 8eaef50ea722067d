#include "muster/net/http/router.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(HttpRouterTest, TextBeatsAParameter) {
  const auto router = HttpRouter::Create({{"GET", "/jobs/{job}/{what}"},
                                          {"GET", "/jobs/all/{what}"},
                                          {"GET", "/jobs/{job}/logs"},
                                          {"GET", "/"}});
  ASSERT_TRUE(router.ok()) << router.status();
  const RouteMatch all = router->Find("GET", {"jobs", "all", "logs"});
  EXPECT_EQ(all.route, 1u);
  EXPECT_THAT(all.parameters, ElementsAre(Pair("what", "logs")));
  const RouteMatch logs = router->Find("GET", {"jobs", "a", "logs"});
  EXPECT_EQ(logs.route, 2u);
  EXPECT_THAT(logs.parameters, ElementsAre(Pair("job", "a")));
  EXPECT_EQ(router->Find("GET", {}).route, 3u);
}

TEST(HttpRouterTest, OtherMethodsAreTold) {
  const auto router = HttpRouter::Create({{"POST", "/x"}, {"GET", "/x"}, {"PUT", "/{any}"}});
  ASSERT_TRUE(router.ok());
  const RouteMatch match = router->Find("DELETE", {"x"});
  EXPECT_FALSE(match.route);
  EXPECT_EQ(match.allowed, "GET, POST, PUT");
  EXPECT_EQ(router->Find("GET", {"y", "z"}).allowed, "");
}

TEST(HttpRouterTest, AParameterIsNeverEmpty) {
  const auto router = HttpRouter::Create({{"GET", "/a/{x}/b"}});
  ASSERT_TRUE(router.ok());
  EXPECT_FALSE(router->Find("GET", {"a", "", "b"}).route);
}

TEST(HttpRouterTest, BadPatternsAreRefused) {
  const auto error = [](std::vector<HttpRouter::Pattern> patterns) {
    return HttpRouter::Create(patterns).status().ToString();
  };
  EXPECT_THAT(error({{"GET", "x"}}), HasSubstr("starts with /"));
  EXPECT_THAT(error({{"GET", "/a{x}"}}), HasSubstr("a segment is text or {name}"));
  EXPECT_THAT(error({{"GET", "/{x}/{x}"}}), HasSubstr("{x} is there twice"));
  EXPECT_THAT(error({{"GET", "/{x}"}, {"GET", "/{y}"}}), HasSubstr("takes the same requests"));
}

}  // namespace
}  // namespace muster::net
