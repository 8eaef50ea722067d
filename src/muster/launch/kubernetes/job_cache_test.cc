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

TEST_F(JobCacheTest, AWatchNeedNotReadWhatAnAnswerHasTold) {
  cache_.SetPod(Pod("a", 20, "Pending"), JobCache::Source::kAnswer);
  cache_.SetPod(Pod("a", 30, "Pending"), JobCache::Source::kAnswer);
  EXPECT_FALSE(cache_.services().IsKnown(20));
  EXPECT_FALSE(cache_.pods_sink().IsKnown(19));
  EXPECT_TRUE(cache_.pods_sink().IsKnown(20));
  EXPECT_FALSE(cache_.pods_sink().IsKnown(25));  // another pod's, or a change by somebody else
  EXPECT_TRUE(cache_.pods_sink().IsKnown(30));
  EXPECT_FALSE(cache_.pods_sink().IsKnown(30));
  // What the watch has brought before the answer.
  cache_.SetPod(Pod("a", 40, "Pending"));
  cache_.SetPod(Pod("a", 40, "Pending"), JobCache::Source::kAnswer);
  EXPECT_FALSE(cache_.pods_sink().IsKnown(40));
}

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

TEST_F(JobCacheTest, APackedJobIsTheSame) {
  cache_.SetPod(Pod("a", 20, "Running"));
  const Json before = *cache_.View(kKey).object;
  cache_.Pack();
  cache_.Pack();
  const JobView held = cache_.View(kKey);
  EXPECT_EQ(*held.object, before);
  EXPECT_EQ(held.pods.size(), 1U);
  cache_.Pack();  // somebody has the object
  EXPECT_EQ(cache_.View(kKey).object, held.object);
  Json edited = before;
  edited["metadata"]["resourceVersion"] = "99";
  cache_.Pack();
  cache_.SetJob(edited);
  EXPECT_EQ(GetVersion(*cache_.View(kKey).object), 99);
}

TEST_F(JobCacheTest, AServiceMakesItsJobDue) {
  Json service = MakeService(job_, kWorker0);
  service["metadata"]["namespace"] = "team";
  service["metadata"]["uid"] = "s";
  service["metadata"]["resourceVersion"] = "20";
  due_.clear();
  cache_.SetService(service);
  cache_.SetService(service);  // nothing new
  EXPECT_THAT(due_, ::testing::ElementsAre(kKey));
  cache_.RemoveService(service);
  EXPECT_THAT(due_, ::testing::ElementsAre(kKey, kKey));
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

TEST_F(JobCacheTest, WhatIsLeftOfAnEarlierJobIsKnownUntilItIsGone) {
  cache_.SetPod(Pod("a", 20, "Running"));
  cache_.RemoveJob(object_);
  Json next = object_;
  next["metadata"]["uid"] = "next-uid";
  next["metadata"]["resourceVersion"] = "40";
  cache_.SetJob(next);
  EXPECT_THAT(cache_.View(kKey).earlier, ::testing::ElementsAre(kPod));
  EXPECT_TRUE(cache_.View(kKey).pods.empty());
  due_.clear();
  cache_.RemovePod(Pod("a", 45, "Running"));
  EXPECT_TRUE(cache_.View(kKey).earlier.empty());
  EXPECT_THAT(due_, ::testing::ElementsAre(kKey));
  cache_.RemoveJob(next);
  EXPECT_EQ(cache_.pods(), 0U);
  // An answer that comes too late brings nothing back, and nobody waits for what has no owner.
  cache_.SetJob(object_);
  cache_.SetPod(Pod("b", 50, "Running"), JobCache::Source::kAnswer);
  EXPECT_EQ(cache_.pods(), 1U);
  cache_.RemoveJob(object_);
  cache_.SetPod(Pod("c", 51, "Running"), JobCache::Source::kAnswer);
  EXPECT_EQ(cache_.pods(), 1U);
  Json orphan = Pod("b", 52, "Running");
  orphan["metadata"].erase("ownerReferences");
  cache_.SetPod(orphan);
  EXPECT_EQ(cache_.pods(), 0U);
}

TEST_F(JobCacheTest, AnEditOfThePersonsIsToldApartFromOurOwnWriting) {
  std::vector<std::string> told;
  JobCache cache([&](const std::string&) { told.emplace_back("due"); },
                 [&](const std::string&) { told.emplace_back("edited"); });
  Json job = object_;
  cache.SetJob(job);
  job["metadata"]["resourceVersion"] = "41";
  job["status"]["muster"] = Json::object();
  cache.SetJob(job);
  job["metadata"]["resourceVersion"] = "42";
  job["metadata"]["annotations"]["muster/stop"] = "enough";
  cache.SetJob(job);
  EXPECT_THAT(told, ::testing::ElementsAre("edited", "due", "edited"));
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
