#include "muster/launch/yarn/yarn_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launch::yarn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FindLeafQueuesTest, OfTheCapacityScheduler) {
  const Json scheduler = Json::parse(R"({"scheduler": {"schedulerInfo": {
      "type": "capacityScheduler", "queueName": "root", "queues": {"queue": [
          {"queueName": "default", "capacity": 60},
          {"queueName": "lab", "queues": {"queue": [{"queueName": "research"}]}}]}}}})");
  EXPECT_THAT(FindLeafQueues(scheduler), ElementsAre("default", "research"));
}

TEST(FindLeafQueuesTest, OfTheFairScheduler) {
  const Json scheduler = Json::parse(R"({"scheduler": {"schedulerInfo": {
      "type": "fairScheduler", "rootQueue": {"queueName": "root", "childQueues": {"queue": [
          {"queueName": "root.a"}, {"queueName": "root.b"}]}}}}})");
  EXPECT_THAT(FindLeafQueues(scheduler), ElementsAre("root.a", "root.b"));
}

TEST(FindLeafQueuesTest, OfAnotherAnswer) {
  EXPECT_THAT(FindLeafQueues(Json::parse(R"({"scheduler": null, "x": [1, "queueName"]})")),
              IsEmpty());
}

}  // namespace
}  // namespace muster::launch::yarn
