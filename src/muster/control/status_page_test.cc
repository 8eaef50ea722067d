#include "muster/control/status_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::control {
namespace {

using formats::Json;
using testing::HasSubstr;
using testing::Not;

Json MakeJob(const std::string& phase) {
  return Json::parse(R"({"name":"wide","phase":")" + phase + R"(","message":"",
      "model_dir":"hdfs://n/<m>","tasks":[
        {"task":"chief-0","phase":"running","incarnation":2,"restarts":1,"step":70,
         "address":"h:1","said":"runs & learns","last_end":{"text":"exit code 3"}},
        {"task":"worker-0","phase":"waiting","incarnation":0,"restarts":0}],
      "failures":[{"task":"chief-0","incarnation":1,"text":"exit code 3",
                   "last_lines":["<script>alert(1)</script>"]}]})");
}

TEST(StatusPage, ShowsTasksAndFailuresAsText) {
  const std::string page = PrintStatusPage(MakeJob("active"));
  EXPECT_THAT(page, HasSubstr("<h1>wide: active</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>chief-0</td><td>running</td><td>70</td><td>1</td><td>h:1</td>"
                              "<td></td><td>runs &amp; learns</td><td>exit code 3</td>"));
  EXPECT_THAT(page, HasSubstr("<td>worker-0</td><td>waiting</td><td></td><td>0</td>"));
  EXPECT_THAT(page, HasSubstr("hdfs://n/&lt;m&gt;"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(StatusPage, LoadsItselfAgainWhileTheJobRuns) {
  EXPECT_THAT(PrintStatusPage(MakeJob("active")), HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(PrintStatusPage(MakeJob("succeeded")), Not(HasSubstr("refresh")));
}

TEST(StatusPage, OfSomethingElseIsEmpty) {
  EXPECT_THAT(PrintStatusPage(Json()), HasSubstr("</html>"));
  EXPECT_THAT(PrintStatusPage(Json::parse(R"({"tasks":7,"failures":[1],"name":[]})")),
              HasSubstr("</html>"));
}

}  // namespace
}  // namespace muster::control
