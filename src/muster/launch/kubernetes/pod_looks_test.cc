#include "muster/launch/kubernetes/pod_looks.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Phase = job::TaskObservation::Phase;

constexpr job::TaskId kServer = {job::TaskType::kPs, 0};

class PodLooksTest : public ::testing::Test {
 protected:
  static TrainingJob MakeJob(const std::string& timeout) {
    Json object = JobObject({{"Worker", ReplicaObject(1)}, {"PS", ReplicaObject(1)}});
    if (!timeout.empty()) object["metadata"]["annotations"]["muster/progressTimeout"] = timeout;
    return ReadJobObject(object);
  }
  JobView View(Phase phase, const std::string& uid = "w", int restarts = 0) const {
    JobView view;
    view.pods["j-worker-0"] = {.uid = uid,
                               .task = kWorker0,
                               .phase = phase,
                               .has_node = true,
                               .restarts_in_place = restarts};
    view.pods["j-ps-0"] = {.uid = "p", .task = kServer, .phase = phase};
    return view;
  }
  double Look(JobView* view) { return looks_.Look("team/j", job_, view); }
  // The worker's time without a sign of life after a look that begins so much later.
  double IdleAfter(double seconds, const std::string& uid = "w", int restarts = 0) {
    clock_.Advance(seconds);
    JobView view = View(Phase::kRunning, uid, restarts);
    Look(&view);
    return view.pods.at("j-worker-0").idle_seconds;
  }

  TrainingJob job_ = MakeJob("40s");
  FakeClock clock_;
  absl::StatusOr<bool> writes_ = false;
  absl::StatusOr<std::string> warning_ = std::string();
  std::vector<std::string> asked_ = {};
  PodLooks looks_{
      {.has_written =
           [this](const std::string& name_space, const std::string& pod,
                  const std::string& container, int seconds) {
             asked_.push_back(StrCat(name_space, "/", pod, "/", container, " ", seconds));
             return writes_;
           },
       .find_warning =
           [this](const std::string& name_space, const std::string& uid) {
             asked_.push_back(StrCat(name_space, " ", uid));
             return warning_;
           }},
      clock_};
};

TEST_F(PodLooksTest, ATaskIsAskedFourTimesInItsTimeAndCountsWhatItHasNotWritten) {
  JobView view = View(Phase::kRunning);
  EXPECT_DOUBLE_EQ(Look(&view), 10);
  EXPECT_DOUBLE_EQ(IdleAfter(5), 0);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_DOUBLE_EQ(IdleAfter(5), 10);
  EXPECT_THAT(asked_, ElementsAre("team/j-worker-0/tensorflow 11"));
  EXPECT_DOUBLE_EQ(IdleAfter(4), 10) << "nothing is known of the time since the look";
  EXPECT_DOUBLE_EQ(IdleAfter(16), 30);
  EXPECT_DOUBLE_EQ(IdleAfter(10), 40);
  writes_ = true;
  EXPECT_DOUBLE_EQ(IdleAfter(10), 0);
}

TEST_F(PodLooksTest, ALookIsDueWhenTheTimeIsOver) {
  JobView view = View(Phase::kRunning);
  Look(&view);
  clock_.Advance(33);
  EXPECT_DOUBLE_EQ(Look(&view), 7);
}

TEST_F(PodLooksTest, AnotherPodOrRunBeginsAnewAndWhatCannotBeAskedIsNoSilence) {
  IdleAfter(0);
  EXPECT_DOUBLE_EQ(IdleAfter(20), 20);
  EXPECT_DOUBLE_EQ(IdleAfter(20, "w", 1), 0);
  EXPECT_DOUBLE_EQ(IdleAfter(20, "w", 1), 20);
  EXPECT_DOUBLE_EQ(IdleAfter(0, "x", 1), 0);
  writes_ = absl::UnavailableError("its kubelet is away");
  EXPECT_DOUBLE_EQ(IdleAfter(30, "x", 1), 0);
}

TEST_F(PodLooksTest, AMissingRightIsSaid) {
  IdleAfter(0);
  clock_.Advance(10);
  writes_ = absl::PermissionDeniedError("cannot get pods/log");
  JobView view = View(Phase::kRunning);
  Look(&view);
  EXPECT_EQ(view.pods.at("j-worker-0").problem,
            "NoSignsOfLife: muster/progressTimeout has no effect: cannot get pods/log");
}

TEST_F(PodLooksTest, WithoutATimeoutNobodyIsAsked) {
  job_ = MakeJob("");
  JobView view = View(Phase::kRunning);
  EXPECT_TRUE(std::isinf(Look(&view)));
  IdleAfter(1000);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(PodLooksTest, APodThatHasANodeAndDoesNotStartIsAskedForItsWarnings) {
  warning_ = std::string("FailedMount: secret \"s\" not found");
  JobView view = View(Phase::kStarting);
  EXPECT_DOUBLE_EQ(Look(&view), 10);
  clock_.Advance(10);
  EXPECT_DOUBLE_EQ(Look(&view), 20);
  EXPECT_THAT(asked_, ElementsAre("team w")) << "the parameter server has no node";
  EXPECT_EQ(view.pods.at("j-worker-0").problem, "FailedMount: secret \"s\" not found");
  clock_.Advance(5);
  view = View(Phase::kStarting);
  EXPECT_DOUBLE_EQ(Look(&view), 15);
  EXPECT_EQ(view.pods.at("j-worker-0").problem, "FailedMount: secret \"s\" not found");
  view = View(Phase::kStarting);
  view.pods.at("j-worker-0").problem = "ErrImagePull: i";
  Look(&view);
  EXPECT_EQ(view.pods.at("j-worker-0").problem, "ErrImagePull: i");
  view = View(Phase::kRunning);
  Look(&view);
  EXPECT_EQ(view.pods.at("j-worker-0").problem, "");
}

}  // namespace
}  // namespace muster::launch::kubernetes
