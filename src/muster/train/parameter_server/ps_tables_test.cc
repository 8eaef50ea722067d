// Parameter servers that save and load tables by themselves, in the chief's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/train/parameter_server/ps_training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PsTablesTest : public PsTrainingTest {
 protected:
  // A table of 70,000 x 4 floats, which have 1.1 MB.
  static std::string LargeSpec() {
    std::string spec(kTestSpec);
    constexpr std::string_view kBuckets = "buckets: 10";
    return spec.replace(spec.find(kBuckets), kBuckets.size(), "buckets: 70000");
  }
  Shape InFolder(const std::string& folder) {
    return {.replicas = 2, .servers = 2, .files = files_.get(), .model_dir = folder};
  }

  const std::string spec_ = LargeSpec();
};

TEST_F(PsTablesTest, CheckpointsHaveTheBytesOfTheChiefs) {
  for (const bool synchronous : {true, false}) {
    const std::string by_chief = StrCat("chief", synchronous),
                      by_servers = StrCat("ps", synchronous);
    Shape shape = InFolder(by_servers);
    shape.synchronous = synchronous;
    shape.replicas = synchronous ? 2 : 1;  // batches of several have no fixed order
    TrainWithPs(shape, Training(), by_servers, spec_);
    shape.files = nullptr;
    TrainWithPs(shape, Training(), by_chief, spec_);
    ExpectSame(by_servers, by_chief, 0);
    EXPECT_THAT(List(by_servers), Contains(StartsWith("model.ckpt-0.data-00002-of-00003")));
    EXPECT_THAT(List(by_chief), Contains(StartsWith("model.ckpt-0.data-00000-of-00001")));
    EXPECT_THAT(List(by_servers), Not(Contains(HasSubstr(".tmp-"))));
    ASSERT_TRUE(Train("alone", Training(), spec_).ok());  // what a process without servers has
    EXPECT_EQ(Weights("alone").size(), Weights(by_servers).size());
  }
}

TEST_F(PsTablesTest, LostServersAndChiefsChangeNoByte) {
  TrainWithPs(InFolder("unbroken"), Training(), "unbroken", spec_);
  TrainSpec spec = Training();
  for (const int victim : {0, 1}) {
    const std::string folder = StrCat("killed", victim);
    const Shape shape = InFolder(folder);
    TestServers servers(shape, spec_);
    std::atomic<int> kills = 0, chiefs = 0;
    TrainWithPs(shape, servers, spec, folder, spec_, [&](int rank, Session& session) {
      if (rank == 1 && session.step >= 10 && kills.exchange(1) == 0) servers.Kill(victim);
      if (rank == 0 && session.step >= 20 && chiefs.exchange(1) == 0) {
        return absl::InternalError(kKilled);
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(kills + chiefs, 2);
    ExpectSame(folder, "unbroken", 0);
    EXPECT_THAT(List(folder), Not(Contains(HasSubstr(".tmp-"))));
  }
}

TEST_F(PsTablesTest, ATrainingContinuesWithOtherServersAndWithTheChiefsMemory) {
  TrainWithPs(InFolder("whole"), Training(), "whole", spec_);
  TrainSpec first = Training();
  first.max_steps = 7;
  TrainWithPs(InFolder("cut"), first, "cut", spec_);
  TrainSpec second = Training();
  second.max_steps = 14;
  Shape shape = InFolder("cut");
  shape.servers = 3;
  TrainWithPs(shape, second, "cut", spec_);
  // One of the servers is on a machine without the folder.
  shape.servers_in_folder = 2;
  TrainWithPs(shape, Training(), "cut", spec_);
  ExpectSame("cut", "whole", 1e-6f);
  EXPECT_THAT(List("cut"), Contains(StartsWith("model.ckpt-14.data-00003-of-00004")));
  EXPECT_THAT(List("cut"), Contains(testing::MatchesRegex("model.ckpt-[23].*-00000-of-00001")));
}

TEST_F(PsTablesTest, AWarmStartReachesTheServers) {
  TrainWithPs(InFolder("first"), Training(), "first", spec_);
  const auto start = [&](const std::string& folder, Shape shape) {
    warm_start_from_ = "first";
    TrainSpec spec = Training();
    spec.max_steps = 5;
    TrainWithPs(shape, spec, folder, spec_);
  };
  start("by-servers", InFolder("by-servers"));
  Shape by_chief = InFolder("by-chief");
  by_chief.files = nullptr;
  start("by-chief", by_chief);
  ExpectSame("by-servers", "by-chief", 0);
}

TEST_F(PsTablesTest, ADamagedFileOfAServerIsPassedOver) {
  const std::string folder = "model";
  for (const int64_t steps : {7, 14}) {
    TrainSpec first = Training();
    first.max_steps = steps;
    TrainWithPs(InFolder(folder), first, folder, spec_);
  }
  const std::string path = io::JoinPath(folder, "model.ckpt-14.data-00001-of-00003");
  std::string bytes = io::ReadFile(*files_, path).value();
  bytes[bytes.size() / 2] ^= 1;
  Write(path, bytes);
  TrainWithPs(InFolder(folder), Training(), folder, spec_);
  TrainWithPs(InFolder("whole"), Training(), "whole", spec_);
  ExpectSame(folder, "whole", 0);
}

}  // namespace
}  // namespace muster::train
