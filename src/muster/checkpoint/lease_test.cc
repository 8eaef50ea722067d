#include "muster/checkpoint/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

using testing::ElementsAre;

class LeaseTest : public testing::Test {
 protected:
  void Save(int64_t step, double seconds) {
    Weights weights(static_cast<float>(step));
    const Strings strings = {{"position", StrCat("at ", step)}};
    ASSERT_TRUE(saver_.Save(step, weights.tensors(), strings, seconds).ok());
  }
  std::vector<std::string> Indexes() {
    std::vector<std::string> found;
    const std::vector<std::string> names = files_->List("m").value();
    for (const std::string& name : names) {
      if (name.ends_with(".index")) found.push_back(name.substr(0, name.size() - 6));
    }
    return found;
  }
  std::vector<std::string> LeaseFiles() {
    std::vector<std::string> found;
    const std::vector<std::string> names = files_->List("m").value();
    for (const std::string& name : names) {
      if (!GetLeasedCheckpoint(name).empty()) found.push_back(name);
    }
    return found;
  }
  // Writes the file that a killed holder leaves.
  void WriteStaleLease(const std::string& name) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, "m/" + name, "7 3\n").ok());
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  Saver saver_{*files_, "m", {.keep_max = 1}};
};

TEST_F(LeaseTest, ALeasedCheckpointStaysUntilItsReaderIsDone) {
  Save(1, kNow);
  auto lease = Lease::Acquire(*files_, "m/model.ckpt-1", "evaluator-0");
  ASSERT_TRUE(lease.ok()) << lease.status();
  Save(2, kNow + 1);
  Save(3, kNow + 2);
  EXPECT_THAT(Indexes(), ElementsAre("model.ckpt-1", "model.ckpt-3"));
  EXPECT_THAT(ReadState(*files_, "m")->all, ElementsAre("model.ckpt-1", "model.ckpt-3"));
  lease->reset();
  EXPECT_THAT(LeaseFiles(), ElementsAre());
  Save(4, kNow + 3);
  EXPECT_THAT(Indexes(), ElementsAre("model.ckpt-4"));
}

TEST_F(LeaseTest, AKilledReadersLeaseLastsAMinuteOfTheSaversClock) {
  Save(1, kNow);
  WriteStaleLease("model.ckpt-1.lease-evaluator-0");
  Save(2, kNow + 1000);  // seen for the first time
  Save(3, kNow + 1000 + kLeaseSeconds - 1);
  EXPECT_THAT(Indexes(), ElementsAre("model.ckpt-1", "model.ckpt-3"));
  Save(4, kNow + 1000 + kLeaseSeconds);
  EXPECT_THAT(Indexes(), ElementsAre("model.ckpt-4"));
  EXPECT_THAT(LeaseFiles(), ElementsAre());
}

TEST_F(LeaseTest, ALeaseThatIsRewrittenDoesNotExpire) {
  Save(1, kNow);
  WriteStaleLease("model.ckpt-1.lease-evaluator-0");
  Save(2, kNow + 1);
  ASSERT_TRUE(io::WriteFileAtomically(*files_, "m/model.ckpt-1.lease-evaluator-0", "7 4\n").ok());
  Save(3, kNow + 1 + 2 * kLeaseSeconds);
  EXPECT_THAT(Indexes(), ElementsAre("model.ckpt-1", "model.ckpt-3"));
}

TEST_F(LeaseTest, ItsHolderRewritesItRegularly) {
  Save(1, kNow);
  const auto lease =
      Lease::Acquire(*files_, "m/model.ckpt-1", "evaluator-0", /*beat_seconds=*/0.001);
  ASSERT_TRUE(lease.ok());
  const std::string path = "m/model.ckpt-1.lease-evaluator-0";
  const std::string first = io::ReadFile(*files_, path).value();
  std::string now = first;
  while (now == first || now.empty()) now = io::ReadFile(*files_, path).value();
  EXPECT_NE(now, first);
}

TEST_F(LeaseTest, ARestartedHolderRemovesItsOldLeases) {
  Save(1, kNow);
  WriteStaleLease("model.ckpt-1.lease-evaluator-0");
  WriteStaleLease("model.ckpt-1.lease-evaluator-10");
  Saver keeps(*files_, "m", {.keep_max = 5});
  Weights weights(2);
  ASSERT_TRUE(keeps.Save(2, weights.tensors(), {}, kNow).ok());
  const auto lease = Lease::Acquire(*files_, "m/model.ckpt-2", "evaluator-0");
  ASSERT_TRUE(lease.ok());
  EXPECT_THAT(LeaseFiles(),
              ElementsAre("model.ckpt-1.lease-evaluator-10", "model.ckpt-2.lease-evaluator-0"));
}

TEST_F(LeaseTest, AMissingCheckpointCannotBeLeased) {
  Save(1, kNow);
  const auto lease = Lease::Acquire(*files_, "m/model.ckpt-0", "evaluator-0");
  EXPECT_TRUE(absl::IsNotFound(lease.status())) << lease.status();
  EXPECT_THAT(LeaseFiles(), ElementsAre());
}

TEST_F(LeaseTest, ALeaseOnARemovedCheckpointIsRemoved) {
  Save(1, kNow);
  WriteStaleLease("model.ckpt-0.lease-evaluator-0");
  WriteStaleLease("model.ckpt-1.lease-evaluator-0");
  RemoveLeftovers(*files_, "m");
  EXPECT_THAT(LeaseFiles(), ElementsAre("model.ckpt-1.lease-evaluator-0"));
}

}  // namespace
}  // namespace muster::checkpoint
