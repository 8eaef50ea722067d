#include "muster/process/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GpusTest, TheInheritedVariableDecides) {
  EXPECT_THAT(VisibleGpus("2, 3,GPU-8932f937", "/dev"), ElementsAre("2", "3", "GPU-8932f937"));
  EXPECT_THAT(VisibleGpus("", "/dev"), IsEmpty());
  EXPECT_THAT(VisibleGpus("1,-1,2", "/dev"), ElementsAre("1")) << "CUDA stops at -1";
}

TEST(GpusTest, WithoutItTheDevicesAreCounted) {
  const TestFolder folder;
  for (const char* name : {"nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm", "null"}) {
    folder.Write(name, "");
  }
  EXPECT_THAT(VisibleGpus(std::nullopt, folder.path()), ElementsAre("0", "1"));
  EXPECT_THAT(VisibleGpus(std::nullopt, folder.File("missing")), IsEmpty());
}

TEST(GpusTest, DealsEachOnce) {
  const auto dealt = DealGpus({"0", "1", "2", "3"}, {1, 0, 2});
  ASSERT_TRUE(dealt.ok()) << dealt.status();
  EXPECT_THAT(*dealt, ElementsAre("0", "", "1,2"));
}

TEST(GpusTest, LeavesTheVariableWhereNobodyAsks) {
  const auto dealt = DealGpus({"0"}, {0, 0});
  ASSERT_TRUE(dealt.ok()) << dealt.status();
  EXPECT_THAT(*dealt, ElementsAre(std::nullopt, std::nullopt));
}

TEST(GpusTest, TooFewIsAnErrorThatCounts) {
  const auto dealt = DealGpus({"4", "5"}, {2, 1});
  EXPECT_EQ(dealt.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(dealt.status().message(), AllOf(HasSubstr("want 3"), HasSubstr("has 2 (4,5)")));
  EXPECT_EQ(DealGpus({}, {-1}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::process
