#include "muster/control/job_place.h"

#include "muster/control/job_place_conformance.h"
#include "muster/control/memory_place.h"

namespace muster::control {
namespace {

class MemoryJobUnderTest : public JobUnderTest {
 public:
  MemoryJobUnderTest() {
    for (const int index : {0, 1}) job_.AddTask({job::TaskType::kWorker, index});
  }
  std::unique_ptr<JobPlace> Open() override { return std::make_unique<MemoryPlace>(&job_); }
  void Write(job::TaskId task, const std::string& bytes) override {
    job_.logs.at(task).bytes += bytes;
  }
  void Succeed() override { job_.End("succeeded"); }
  void Settle() override {}
  void SetSilent(bool silent) override { job_.silent = silent; }
  void Move() override { job_.address = "b:2"; }
  bool Lose() override { return false; }

 private:
  MemoryJob job_;
};

INSTANTIATE_TEST_SUITE_P(Memory, JobPlaceConformance,
                         ::testing::Values(JobPlaceMember{
                             "Memory", [] { return std::make_unique<MemoryJobUnderTest>(); }}),
                         JobPlaceMemberName);

}  // namespace
}  // namespace muster::control
