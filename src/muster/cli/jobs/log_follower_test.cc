#include "muster/cli/jobs/log_follower.h"

#include <cstdlib>

#include "gtest/gtest.h"
#include "muster/control/memory_place.h"

namespace muster::cli {
namespace {

constexpr job::TaskId kChief{job::TaskType::kChief, 0}, kWorker{job::TaskType::kWorker, 0};

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollowerTest() {
    job_.AddTask(kChief);
    job_.AddTask(kWorker);
    out_ = open_memstream(&text_, &size_);
  }
  ~LogFollowerTest() override {
    std::fclose(out_);
    std::free(text_);  // NOLINT: open_memstream's contract
  }
  std::unique_ptr<LogFollower> Open(const std::vector<job::TaskId>& tasks) {
    return *LogFollower::Open(place_, {.tasks = tasks, .prefix = tasks.size() > 1}, out_);
  }
  // Returns what was printed since the last call.
  std::string Printed() {
    std::fflush(out_);
    const std::string all(text_, size_);
    const std::string news = all.substr(taken_);
    taken_ = all.size();
    return news;
  }

  control::MemoryJob job_;
  control::MemoryPlace place_{&job_};
  char* text_ = nullptr;
  size_t size_ = 0, taken_ = 0;
  std::FILE* out_ = nullptr;
};

TEST_F(LogFollowerTest, PrintsWholeLinesWithTheTasksNames) {
  const auto logs = Open({kChief, kWorker});
  job_.logs[kChief].bytes = "one\ntw";
  job_.logs[kWorker].bytes = "three\n";
  logs->Print();
  EXPECT_EQ(Printed(), "chief-0  | one\nworker-0 | three\n");
  job_.logs[kChief].bytes += "o\n";
  logs->Print();
  EXPECT_EQ(Printed(), "chief-0  | two\n");
  job_.logs[kWorker].bytes += "four";
  logs->Print();
  EXPECT_EQ(Printed(), "");
  logs->Print(/*last=*/true);
  EXPECT_EQ(Printed(), "worker-0 | four\n");
}

TEST_F(LogFollowerTest, LinesThatAreNotWantedAreLeftOut) {
  std::vector<std::string> asked;
  const auto wants = [&](const std::string& task, std::string_view line) {
    asked.push_back(task + " " + std::string(line));
    return line != "step 2";
  };
  const auto logs = *LogFollower::Open(place_, {.tasks = {kWorker}, .wants = wants}, out_);
  job_.logs[kWorker].bytes = "one\nstep 2\nthree\n";
  logs->Print();
  EXPECT_EQ(Printed(), "worker-0 | one\nworker-0 | three\n");
  EXPECT_EQ(asked, std::vector<std::string>({"worker-0 one", "worker-0 step 2", "worker-0 three"}));
}

TEST_F(LogFollowerTest, LostOutputIsReported) {
  const auto logs = Open({kWorker});
  job_.logs[kWorker].bytes = "one\ntw";
  logs->Print();
  job_.logs[kWorker] = {.bytes = "three\n", .truncated = 1};
  logs->Print();
  EXPECT_EQ(Printed(), "one\ntw\n[muster: output is missing here]\nthree\n");
}

// A log of two runs, which a source keeps apart.
class TwoRuns : public control::LogSource {
 public:
  absl::StatusOr<control::LogPiece> Read(int64_t offset, size_t, double) override {
    if (offset == 0) return control::LogPiece{.bytes = "one\ntw", .next = 6};
    if (offset == 6) return control::LogPiece{.bytes = "three\n", .next = 12, .begins_run = true};
    return control::LogPiece{.next = offset};
  }
};

class PlaceOfTwoRuns : public control::MemoryPlace {
 public:
  using control::MemoryPlace::MemoryPlace;
  absl::StatusOr<std::unique_ptr<control::LogSource>> OpenLog(job::TaskId) override {
    return std::make_unique<TwoRuns>();
  }
};

TEST_F(LogFollowerTest, ANewRunIsMarked) {
  PlaceOfTwoRuns place(&job_);
  const auto logs = *LogFollower::Open(place, {.tasks = {kWorker}, .prefix = false}, out_);
  logs->Print();
  EXPECT_EQ(Printed(), "one\ntw\n[muster: a new run of worker-0 begins]\nthree\n");
}

TEST_F(LogFollowerTest, ASilentPlaceIsReadAgainFromTheSameOffset) {
  const auto logs = Open({kWorker});
  job_.logs[kWorker].bytes = "one\n";
  logs->Print();
  EXPECT_EQ(Printed(), "one\n");
  job_.silent = true;
  job_.logs[kWorker].bytes += "two\n";
  EXPECT_FALSE(logs->PrintOrWait(0.01));
  EXPECT_TRUE(absl::IsUnavailable(logs->status()));
  EXPECT_EQ(Printed(), "");
  job_.silent = false;
  job_.address = "b:2";
  EXPECT_TRUE(logs->PrintOrWait(0.01));
  EXPECT_EQ(Printed(), "two\n");
  EXPECT_TRUE(logs->status().ok());
}

TEST_F(LogFollowerTest, WaitsForOutput) {
  const auto logs = Open({kChief, kWorker});
  job_.on_wait = [this] { job_.logs[kWorker].bytes += "at last\n"; };
  EXPECT_TRUE(logs->PrintOrWait(60));
  EXPECT_EQ(Printed(), "worker-0 | at last\n");
}

TEST_F(LogFollowerTest, ATaskThatTheJobDoesNotHaveIsRefused) {
  EXPECT_TRUE(absl::IsNotFound(
      LogFollower::Open(place_, {.tasks = {{job::TaskType::kPs, 0}}}, out_).status()));
}

}  // namespace
}  // namespace muster::cli
