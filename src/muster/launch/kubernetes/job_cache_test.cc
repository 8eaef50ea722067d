#include "muster/launch/kubernetes/job_cache.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/kubernetes_test_support.h"

namespace muster::launch::kubernetes {
namespace {

using Phase = job::TaskObservation::Phase;

constexpr char kKey[] = "team/j";
constexpr char kPod[] = "j-worker-0";

class JobCacheTest : public ::testing::Test {
 protected:
  JobCacheTest() { cache_.SetJob(object_); }

  Json Pod(const std::string& uid, int64_t version, const std::string& phase) const {
    return PodObject(job_, kWorker0, 1, uid, version, phase);
  }
  PodRecord Known() const { return cache_.View(kKey).pods.at(kPod); }

  const Json object_ = JobObject({{"Worker", ReplicaObject(1)}});
  const TrainingJob job_ = ReadJobObject(object_);
  std::vector<std::string> due_;
  JobCache cache_{[this](const std::string& key) { due_.push_back(key); }};
};

TEST_F(JobCacheTest, TheNewerVersionCounts) {
  cache_.SetPod(Pod("a", 20, "Running"));
  cache_.SetPod(Pod("a", 15, "Pending"));  // an event that came late
  EXPECT_EQ(Known().phase, Phase::kRunning);
  EXPECT_THAT(due_, ::testing::ElementsAre(kKey, kKey));
  cache_.SetPod(Pod("b", 30, "Pending"));
  cache_.RemovePod(Pod("a", 25, "Running"));  // of the pod before
  EXPECT_EQ(Known().uid, "b");
  EXPECT_EQ(Known().phase, Phase::kStarting);
}

TEST_F(JobCacheTest, AGonePodIsRemembered) {
  EXPECT_TRUE(cache_.View(kKey).pods.empty());
  cache_.SetPod(Pod("a", 20, "Running"));
  cache_.RemovePod(Pod("a", 21, "Running"));
  EXPECT_EQ(Known().phase, Phase::kGone);
  EXPECT_TRUE(Known().end.disrupted);
}

TEST_F(JobCacheTest, AListRemovesWhatItDoesNotHave) {
  cache_.SetPod(Pod("a", 20, "Running"));
  cache_.pods_sink().BeginList();
  cache_.pods_sink().EndList(/*version=*/19);  // from before the pod
  EXPECT_EQ(Known().phase, Phase::kRunning);
  cache_.pods_sink().BeginList();
  cache_.pods_sink().Set(Pod("a", 20, "Running"));
  cache_.pods_sink().EndList(25);
  EXPECT_EQ(Known().phase, Phase::kRunning);
  cache_.pods_sink().BeginList();
  cache_.pods_sink().EndList(26);
  EXPECT_EQ(Known().phase, Phase::kGone);
  cache_.jobs().BeginList();
  cache_.jobs().EndList(27);
  EXPECT_EQ(cache_.View(kKey).object, nullptr);
  EXPECT_EQ(cache_.pods(), 0U);
}

TEST_F(JobCacheTest, AnotherJobOfTheNameHasNoneOfItsPods) {
  cache_.SetPod(Pod("a", 20, "Running"));
  Json other = object_;
  other["metadata"]["uid"] = "other-uid";
  other["metadata"]["resourceVersion"] = "40";
  cache_.SetJob(other);
  EXPECT_TRUE(cache_.View(kKey).pods.empty());
}

}  // namespace
}  // namespace muster::launch::kubernetes
