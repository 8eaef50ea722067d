#include "muster/engine/tensorflow/host_process.h"

#include <signal.h>

#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/tensorflow/test_model.h"
#include "muster/process/cpu_sets.h"

namespace muster::engine::tensorflow {
namespace {

using ::testing::HasSubstr;

// Puts a float tensor [n] into the segment.
absl::StatusOr<host::TensorPlace> PutFloats(HostProcess& process, std::vector<float> values) {
  host::TensorPlace place{.type = 1, .bytes = values.size() * sizeof(float), .rank = 1};
  place.dims[0] = values.size();
  MUSTER_ASSIGN_OR_RETURN(place.offset, process.segment().Allocate(place.bytes));
  std::memcpy(process.segment().at(place.offset), values.data(), place.bytes);
  return place;
}

class HostProcessTest : public testing::Test {
 protected:
  // Starts a host that sums x; its graph has the lines `faults` in addition.
  void Start(const std::string& faults, double run_seconds = 60, bool one_core = false) {
    folder_.WriteGraph(std::string(TestGraph()) + faults);
    HostSpec spec = FakeHost(folder_);
    spec.run_seconds = run_seconds;
    spec.one_core = one_core;
    auto host = HostProcess::Start(spec);
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    const auto function = host_->Define({.feeds = {{"label:0", 1}}, .fetches = {"loss_sum:0"}});
    ASSERT_TRUE(function.ok()) << function.status();
    function_ = *function;
    const auto place = PutFloats(*host_, {1, 2, 4});
    ASSERT_TRUE(place.ok()) << place.status();
    feed_ = *place;
  }
  absl::StatusOr<float> Sum() {
    MUSTER_ASSIGN_OR_RETURN(const auto results, host_->Run(function_, {&feed_, 1}));
    float sum;
    std::memcpy(&sum, host_->segment().at(results[0].offset), sizeof sum);
    return sum;
  }
  std::string Fault(const std::string& kind, int run, const std::string& marker) const {
    return StrCat("fault ", kind, " ", run, " ", folder_.File(marker), "\n");
  }

  const ModelFolder folder_;
  std::unique_ptr<HostProcess> host_;
  uint64_t function_ = 0;
  host::TensorPlace feed_;
};

TEST_F(HostProcessTest, RunsAFunction) {
  Start("");
  EXPECT_EQ(host_->version(), "2.99.0-fake");
  for (int i = 0; i < 3; ++i) {
    const auto sum = Sum();
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(*sum, 7);
  }
  EXPECT_EQ(host_->starts(), 1);
}

// TensorFlow's single-threaded executor waits for ever where a graph is on two devices.
TEST_F(HostProcessTest, ComputesBesideAGpu) {
  setenv("FAKE_TENSORFLOW_DEVICE", "GPU", 1);
  Start("", 5);
  EXPECT_EQ(Sum().value(), 7);
  unsetenv("FAKE_TENSORFLOW_DEVICE");
}

TEST_F(HostProcessTest, AHostThatDiesIsStartedAgainAndTheRequestRepeated) {
  for (const char* const kind : {"crash", "kill"}) {
    Start(Fault(kind, 2, StrCat("died_of_", kind)));
    EXPECT_EQ(Sum().value(), 7);
    const pid_t first = host_->pid();
    EXPECT_EQ(Sum().value(), 7);
    EXPECT_NE(host_->pid(), first);
    EXPECT_EQ(host_->starts(), 2);
  }
}

TEST_F(HostProcessTest, AHostThatIsKilledBetweenRequestsIsStartedAgain) {
  Start("");
  EXPECT_EQ(Sum().value(), 7);
  const pid_t pid = host_->pid();
  ASSERT_GT(pid, 0);
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  EXPECT_EQ(Sum().value(), 7);
  EXPECT_EQ(host_->starts(), 2);
  // The new host has the functions of the old one, in their order.
  const auto another = host_->Define({.feeds = {{"x:0", 1}}, .fetches = {"prediction:0"}});
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_EQ(*another, function_ + 1);
}

TEST_F(HostProcessTest, ItsOwnerStaysOnItsCoreUntilItRests) {
  const std::vector<int> before = process::AvailableCpus().value();
  if (before.size() < 2) GTEST_SKIP() << "needs two cores";
  Start(Fault("kill", 3, "died_bound"), 60, /*one_core=*/true);
  EXPECT_EQ(process::AvailableCpus().value(), before) << "no request has been made yet";
  EXPECT_EQ(Sum().value(), 7);
  if (process::AvailableCpus().value() == before) GTEST_SKIP() << "others have claimed all cores";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Sum().value(), 7);  // another host answers
    EXPECT_EQ(process::AvailableCpus().value().size(), 1u);
  }
  host_->Rest();
  EXPECT_EQ(process::AvailableCpus().value(), before);
  EXPECT_EQ(Sum().value(), 7);
  EXPECT_EQ(process::AvailableCpus().value().size(), 1u);
  host_.reset();
  EXPECT_EQ(process::AvailableCpus().value(), before);
}

TEST_F(HostProcessTest, AModelThatIsGoneIsAnErrorUntilItIsBack) {
  Start("");
  const std::string here = folder_.File("step"), away = folder_.File("away");
  std::filesystem::rename(here, away);
  ASSERT_GT(host_->pid(), 0);
  ASSERT_EQ(kill(host_->pid(), SIGKILL), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Sum().status().message(), HasSubstr("no saved_model.pb in " + here));
    EXPECT_EQ(host_->pid(), -1);
  }
  std::filesystem::rename(away, here);
  EXPECT_EQ(Sum().value(), 7);
}

TEST_F(HostProcessTest, AHostThatHangsIsKilledAndStartedAgain) {
  Start(Fault("hang", 1, "hung"), 0.5);
  EXPECT_EQ(Sum().value(), 7);
  EXPECT_EQ(host_->starts(), 2);
}

TEST_F(HostProcessTest, AStoppedHostIsKilledAndStartedAgain) {
  Start("", 0.5);
  const pid_t pid = host_->pid();
  ASSERT_GT(pid, 0);
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  EXPECT_EQ(Sum().value(), 7);
  EXPECT_EQ(host_->starts(), 2);
}

TEST_F(HostProcessTest, AHostThatAlwaysDiesIsReportedWithItsLastLines) {
  Start(Fault("crash", 1, "no/such/folder"));
  const auto sum = Sum();
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(sum.status().message(), HasSubstr("was to compute and died: signal 6"));
  EXPECT_THAT(sum.status().message(), HasSubstr("the fake shall crash in run 1"));
  EXPECT_EQ(host_->starts(), 3);
  EXPECT_EQ(host_->pid(), -1);
}

TEST_F(HostProcessTest, AHostThatIsAlwaysKilledIsReportedAsOutOfMemory) {
  Start(Fault("kill", 1, "no/such/folder"));
  const auto sum = Sum();
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(sum.status().message(), HasSubstr("the memory was too small"));
}

TEST_F(HostProcessTest, AHostThatAlwaysHangsIsReported) {
  Start(Fault("hang", 1, "no/such/folder"), 0.3);
  const auto sum = Sum();
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(sum.status().message(), HasSubstr("was to compute in 0.3 s and did not"));
}

TEST_F(HostProcessTest, TensorFlowsErrorsArePassedOn) {
  Start("fault fail 1\n");
  const auto sum = Sum();
  EXPECT_EQ(sum.status(), absl::InvalidArgumentError("the fake was told to fail"));
  EXPECT_EQ(Sum().value(), 7);
  EXPECT_EQ(host_->starts(), 1);
}

TEST_F(HostProcessTest, ResultsLargerThanTheReplyAreFetchedAgain) {
  Start("");
  const auto function =
      host_->Define({.feeds = {{"x:0", 1}}, .fetches = {"prediction:0", "many:0"}});
  ASSERT_TRUE(function.ok()) << function.status();
  std::vector<float> values(300'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto place = PutFloats(*host_, values);
  ASSERT_TRUE(place.ok()) << place.status();
  for (int i = 0; i < 2; ++i) {
    const auto results = host_->Run(*function, {&*place, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ((*results)[0].bytes, values.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(host_->segment().at((*results)[0].offset), values.data(),
                          values.size() * sizeof(float)),
              0);
    EXPECT_EQ((*results)[1].dims[0], 100'000u);
  }
}

TEST_F(HostProcessTest, Strings) {
  Start("");
  const auto function = host_->Define({.feeds = {{"names:0", 7}}, .fetches = {"read_names:0"}});
  ASSERT_TRUE(function.ok()) << function.status();
  const uint64_t offsets[4] = {0, 2, 2, 5};
  host::TensorPlace place{.type = 7, .bytes = sizeof offsets + 5, .rank = 1};
  place.dims[0] = 3;
  place.offset = host_->segment().Allocate(place.bytes).value();
  std::memcpy(host_->segment().at(place.offset), offsets, sizeof offsets);
  std::memcpy(host_->segment().at(place.offset) + sizeof offsets, "abcde", 5);
  const auto results = host_->Run(*function, {&place, 1});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ((*results)[0].bytes, place.bytes);
  EXPECT_EQ(std::memcmp(host_->segment().at((*results)[0].offset),
                        host_->segment().at(place.offset), place.bytes),
            0);
}

TEST_F(HostProcessTest, InvalidPlacesAreRefused) {
  Start("");
  const host::TensorPlace good = feed_;
  feed_.bytes += 4;
  EXPECT_THAT(Sum().status().message(), HasSubstr("feed label:0: 16 bytes do not fit its shape"));
  feed_ = good;
  feed_.offset = host::kMaxSegmentBytes;
  EXPECT_THAT(Sum().status().message(), HasSubstr("is not in the shared memory"));
  feed_ = good;
  feed_.type = 3;
  EXPECT_THAT(Sum().status().message(), HasSubstr("its type differs"));
  feed_ = good;
  feed_.rank = 2;
  feed_.dims[0] = feed_.dims[1] = uint64_t{1} << 40;
  EXPECT_FALSE(Sum().ok());
  feed_ = good;
  EXPECT_EQ(Sum().value(), 7);
}

TEST_F(HostProcessTest, FunctionsWithUnknownTensorsAreRefused) {
  Start("");
  EXPECT_THAT(host_->Define({.feeds = {{"no:0", 1}}, .fetches = {}}).status().message(),
              HasSubstr("has no tensor no:0"));
  EXPECT_THAT(host_->Define({.feeds = {{"x:1", 1}}, .fetches = {}}).status().message(),
              HasSubstr("has no tensor x:1"));
  EXPECT_THAT(host_->Define({.feeds = {{"x:0", 9}}, .fetches = {}}).status().message(),
              HasSubstr("has TensorFlow's type 1, not 9"));
}

TEST_F(HostProcessTest, TheHostEndsWithItsOwner) {
  Start("");
  const pid_t pid = host_->pid();
  host_.reset();
  EXPECT_FALSE(std::filesystem::exists(StrCat("/proc/", pid)));
}

TEST(HostProcessErrorsTest, AHostThatCannotBeStartedIsReported) {
  const ModelFolder folder;
  folder.WriteGraph(TestGraph());
  HostSpec spec = FakeHost(folder);
  spec.library_folder = folder.path();
  auto host = HostProcess::Start(spec);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(host.status().message(), HasSubstr("no libtensorflow_cc.so.2 in"));

  folder.Write("libtensorflow_cc.so.2", "no library");
  host = HostProcess::Start(spec);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kFailedPrecondition);

  spec = FakeHost(folder);
  process::SetEnvironment("FAKE_TENSORFLOW_VERSION", "2.15.1", &spec.environment);
  host = HostProcess::Start(spec);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(host.status().message(), HasSubstr("TensorFlow 2.15.1: muster needs 2.16"));

  spec = FakeHost(folder);
  spec.saved_model = folder.File("nothing");
  host = HostProcess::Start(spec);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(host.status().message(), HasSubstr("with TensorFlow 2.99.0-fake: no saved_model.pb"));

  spec = FakeHost(folder);
  spec.program = "/bin/true";
  host = HostProcess::Start(spec);
  EXPECT_EQ(host.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(host.status().message(), HasSubstr("was to load TensorFlow and died: exit code 0"));

  spec.program = folder.File("no-program");
  EXPECT_EQ(HostProcess::Start(spec).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::engine::tensorflow
