#include "muster/tune/study_server.h"

#include "muster/io/memory_file_system.h"
#include "muster/tune/tune_test_support.h"

namespace muster::tune {
namespace {

using testing::HasSubstr;

class StudyServerTest : public testing::Test {
 protected:
  StudyServerTest() { Open(); }

  // As a process that begins, after another one was killed.
  void Open() {
    StudySpec spec = TestStudySpec();
    spec.scheduler = {.kind = SchedulerSpec::Kind::kAsha, .factor = 2};
    auto journal = StudyJournal::Open(*files_, clock_, "/study.log", Json::object(), spec);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
    server_ = std::make_unique<StudyServer>(*journal_, clock_);
  }
  Json Call(const Json& call) { return server_->Answer(call.dump()); }
  std::string ErrorOf(const Json& call) { return Call(call).value("error", ""); }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  SystemClock clock_;
  std::unique_ptr<StudyJournal> journal_;
  std::unique_ptr<StudyServer> server_;
};

TEST_F(StudyServerTest, TrialsAreAskedForReportedAndTold) {
  const Json asked = Call({{"call", "ask"}});
  ASSERT_TRUE(asked.contains("trial")) << asked;
  EXPECT_EQ(asked["trial"]["number"], 0);
  EXPECT_EQ(asked["trial"]["state"], "running");
  EXPECT_TRUE(asked["trial"]["parameters"].contains("x"));
  EXPECT_EQ(Call({{"call", "report"}, {"trial", 0}, {"value", 3}})["stop"], "");
  EXPECT_EQ(Call({{"call", "report"}, {"trial", 0}, {"resource", 4}, {"value", 2}})["stop"], "");
  const Json told = Call({{"call", "tell"}, {"trial", 0}})["trial"];
  EXPECT_EQ(told["state"], "complete");
  EXPECT_EQ(told["value"], 2) << "the last report is the value";
  EXPECT_EQ(told["reports"], Json::parse("[[1, 3], [4, 2]]"));
  Call({{"call", "ask"}});
  EXPECT_NE(Call({{"call", "report"}, {"trial", 1}, {"value", 9}})["stop"], "")
      << "half of two trials go on";
  EXPECT_EQ(Call({{"call", "tell"}, {"trial", 1}, {"state", "stopped"}})["trial"]["value"], 9);
  Call({{"call", "ask"}});
  const Json failed =
      Call({{"call", "tell"}, {"trial", 2}, {"state", "failed"}, {"error", "no memory"}})["trial"];
  EXPECT_EQ(failed["error"], "no memory");
  const Json study = Call({{"call", "describe"}});
  EXPECT_EQ(study["trials"].size(), 3);
  EXPECT_EQ(study["best"], 0);
}

TEST_F(StudyServerTest, AProcessThatBeginsAgainGivesTheRunningTrialFirst) {
  const Json asked = Call({{"call", "ask"}});
  Call({{"call", "ask"}});
  Open();
  EXPECT_EQ(Call({{"call", "ask"}}), asked);
  EXPECT_EQ(Call({{"call", "ask"}})["trial"]["number"], 1);
  EXPECT_EQ(Call({{"call", "ask"}})["trial"]["number"], 2);
}

TEST_F(StudyServerTest, TheCallerMayChooseThePoint) {
  const Json point = {{"x", 1.5}, {"y", 0.25}, {"kind", "b"}, {"depth", 3}};
  EXPECT_EQ(Call({{"call", "ask"}, {"parameters", point}})["trial"]["parameters"], point);
  EXPECT_THAT(ErrorOf({{"call", "ask"}, {"parameters", {{"x", 1}, {"y", 0.1}, {"kind", "b"}}}}),
              HasSubstr("lack 'depth'"));
  EXPECT_THAT(ErrorOf({{"call", "ask"},
                       {"parameters", {{"x", 1}, {"y", 0.1}, {"kind", "a"}, {"depth", 2}}}}),
              HasSubstr("may not have 'depth'"));
  EXPECT_THAT(ErrorOf({{"call", "ask"}, {"parameters", {{"x", 6}, {"y", 0.1}, {"kind", "a"}}}}),
              HasSubstr("x"));
  EXPECT_EQ(Call({{"call", "describe"}})["trials"].size(), 1) << "an error begins no trial";
}

TEST_F(StudyServerTest, WrongCallsAreErrorsAndChangeNothing) {
  EXPECT_THAT(server_->Answer("{").value("error", ""), HasSubstr("a call of the study"));
  EXPECT_THAT(ErrorOf({{"call", "aks"}}), HasSubstr("did you mean 'ask'"));
  EXPECT_THAT(ErrorOf({{"call", "tell"}}), HasSubstr("names no trial"));
  EXPECT_THAT(ErrorOf({{"call", "tell"}, {"trial", 5}}), HasSubstr("has no trial 5"));
  Call({{"call", "ask"}});
  EXPECT_THAT(ErrorOf({{"call", "tell"}, {"trial", 0}}), HasSubstr("has no value"));
  EXPECT_THAT(ErrorOf({{"call", "tell"}, {"trial", 0}, {"state", "done"}, {"value", 1}}),
              HasSubstr("unknown state 'done'"));
  Call({{"call", "tell"}, {"trial", 0}, {"value", nullptr}});
  EXPECT_THAT(ErrorOf({{"call", "report"}, {"trial", 0}, {"value", 1}}),
              HasSubstr("trial 0 has ended already: it is complete"));
  EXPECT_TRUE(Call({{"call", "describe"}})["trials"][0]["value"].is_null()) << "not a number";
}

}  // namespace
}  // namespace muster::tune
