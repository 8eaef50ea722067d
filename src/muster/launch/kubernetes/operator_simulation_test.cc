// The operator's core through the seeded histories of simulated_cluster.h; bugs planted around it
// show that each invariant can fail.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/test_size.h"
#include "muster/launch/kubernetes/simulated_cluster.h"

namespace muster::launch::kubernetes {
namespace {

TEST(OperatorSimulationTest, TheInvariantsHold) {
  ExpectInvariantsHold([](uint64_t seed) { return ClusterSimulation(seed, {}).Run(); });
}

// 5399: a job that cannot be read is suspended and loses its worker; its parameter server was left
// to run.
TEST(OperatorSimulationTest, HistoriesThatHaveFailed) {
  for (const uint64_t seed : {5399}) EXPECT_EQ(ClusterSimulation(seed, {}).Run(), "") << seed;
}

PlantedBug Bug(const char* name, const char* invariant, const Tampering& tampering) {
  return {name, invariant,
          [tampering](uint64_t seed) { return ClusterSimulation(seed, tampering).Run(); }};
}

void RunsWithoutAdmission(std::string* target, Json* object) {
  if (target->ends_with("/pods")) (*object)["spec"].erase("schedulingGates");
}

void MakesALostSecretAtOnce(std::string* target, Json* /*object*/) {
  target->resize(std::min(target->find("?dryRun"), target->size()));
}

void DoesNotCleanUp(SimulatedApiServer& /*server*/, const std::string& /*target*/,
                    std::string* uid) {
  *uid = "another";
}

void WritesOverANewerStatus(SimulatedApiServer& server, Json* object) {
  const auto stored = server.Find("tfjobs", GetName(*object));
  (*object)["metadata"]["resourceVersion"] = StrCat(GetVersion(*stored));
}

void DeletesByNameAlone(SimulatedApiServer& server, const std::string& target, std::string* uid) {
  const auto found = server.Find(target.find("/pods/") == target.npos ? "services" : "pods",
                                 target.substr(target.rfind('/') + 1));
  if (found != nullptr) *uid = GetUid(*found);
}

void TakesANameForThePod(absl::StatusOr<Json>* found) { *found = absl::NotFoundError("gone"); }

bool LosesDeletions(const std::string& /*plural*/, bool deleted, Json* /*object*/) {
  return !deleted;
}

bool TakesAFailureForASuccess(const std::string& /*plural*/, bool /*deleted*/, Json* object) {
  Json& status = (*object)["status"];
  if (status.contains("phase") && status["phase"] == "Failed") {
    status["phase"] = "Succeeded";
    status["containerStatuses"][0]["state"]["terminated"]["exitCode"] = 0;
  }
  return true;
}

bool ForgetsTheState(const std::string& plural, bool /*deleted*/, Json* object) {
  if (plural == kTfJobs.plural) (*object)["status"] = Json::object();
  return true;
}

TEST(OperatorSimulationTest, EachPlantedBugIsCaught) {
  if (kUnderSanitizer)
    GTEST_SKIP() << "only the release build runs the thousands of histories that this takes";
  ExpectBugsAreCaught(
      {
          Bug("runs pods without admission", "one pod", {.create = RunsWithoutAdmission}),
          Bug("makes a lost Secret at once", "one key", {.create = MakesALostSecretAtOnce}),
          Bug("deletes nothing", "nothing left", {.remove = DoesNotCleanUp}),
          Bug("writes over a newer status", "counted", {.replace = WritesOverANewerStatus}),
          Bug("deletes by name alone", "counted", {.remove = DeletesByNameAlone}),
          Bug("calls gone what it did not see", "counted", {.get = TakesANameForThePod}),
          Bug("takes an unseen pod for none", "kept", {.get = TakesANameForThePod}),
          Bug("loses deletions", "ends", {.event = LosesDeletions}),
          Bug("takes a failure for a success", "truth", {.event = TakesAFailureForASuccess}),
          Bug("forgets the state", "final", {.event = ForgetsTheState}),
          Bug("takes an old list for a new one", "counted",
              {.list_version = [](int64_t* version) { *version += 1000; }}),
          Bug("sleeps indefinitely", "ends", {.wake_after = [](double* wake) { *wake = 1e12; }}),
      },
      2000, {"one pod", "one key", "counted", "truth", "final", "ends", "kept", "nothing left"});
}

}  // namespace
}  // namespace muster::launch::kubernetes
