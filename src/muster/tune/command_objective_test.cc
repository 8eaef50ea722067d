#include "muster/tune/command_objective.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CommandObjectiveTest : public testing::Test {
 protected:
  CommandObjectiveTest() {
    std::string name = testing::TempDir() + "tune-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~CommandObjectiveTest() override { std::filesystem::remove_all(folder_); }

  // `stop_at`: the number of the report that is answered by a stop.
  absl::StatusOr<Outcome> Run(const std::string& script, size_t stop_at = 0) {
    const auto objective =
        NewCommandObjective({.words = [&](const Trial&) -> std::vector<std::string> {
                               return {"sh", "-c", script};
                             },
                             .metric = "auc",
                             .log_folder = folder_,
                             .stop = &stop_});
    return objective->Run({}, [&](const Report& report) -> absl::StatusOr<std::string> {
      reported_.push_back(report.value);
      return reported_.size() == stop_at ? "worse" : "";
    });
  }
  static std::string MessageOf(const absl::StatusOr<Outcome>& outcome) {
    return std::string(ToStd(outcome.status().message()));
  }

  std::string folder_;
  std::atomic<bool> stop_ = false;
  std::vector<double> reported_;
};

TEST_F(CommandObjectiveTest, TheLastLineWithTheMetricIsTheResult) {
  const auto outcome = Run(R"(echo begin; echo '{"auc": 0.5, "epoch": 3}'; echo '{"loss": 1}'; )"
                           R"(printf '{"auc": 0.75, "epoch": 6, "records": 40}')");
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->state, TrialState::kComplete);
  EXPECT_EQ(outcome->last.value, 0.75);
  EXPECT_EQ(outcome->last.resource, 6);
  EXPECT_EQ(outcome->last.records, 40U);
  EXPECT_THAT(reported_, ElementsAre(0.5, 0.75));
}

TEST_F(CommandObjectiveTest, AValueThatPythonWritesAsNaNIsNoNumber) {
  const auto outcome = Run(R"(echo '{"note": "\"NaN", "loss": -Infinity, "auc": NaN}')");
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(std::isnan(outcome->last.value));
}

TEST_F(CommandObjectiveTest, AFailureNamesItsCause) {
  EXPECT_THAT(MessageOf(Run("echo 'no such file' >&2; exit 3")),
              HasSubstr("exit code 3: no such file; its output is in"));
  EXPECT_THAT(MessageOf(Run("echo '{\"acc\": 1}'")),
              HasSubstr("no line of its output is JSON with \"auc\": its last line is '{\"acc\""));
}

TEST_F(CommandObjectiveTest, ATrialThatIsToldToStopIsEnded) {
  const auto outcome = Run(R"(echo '{"auc": 0.5}'; sleep 60)", 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->state, TrialState::kStopped);
  EXPECT_EQ(outcome->last.value, 0.5);
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(Run("sleep 60").status()));
}

TEST_F(CommandObjectiveTest, ATrialThatIsToldToStopIsStoppedHoweverItEnds) {
  const std::string values = R"(echo '{"auc": 0.5}'; )";
  for (const std::string& rest :
       {std::string(R"(trap 'exit 0' TERM; sleep 60 & wait)"),
        std::string(R"(echo '{"auc": 0.75}'; echo '{"auc": 0.875}'; exit 0)"),
        std::string(R"(printf '{"auc": 0.75}'; exit 3)")}) {
    reported_.clear();
    const auto outcome = Run(values + rest, 1);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->state, TrialState::kStopped) << rest;
    EXPECT_EQ(outcome->last.value, 0.5) << rest;
    EXPECT_THAT(reported_, ElementsAre(0.5)) << rest;
  }
}

}  // namespace
}  // namespace muster::tune
