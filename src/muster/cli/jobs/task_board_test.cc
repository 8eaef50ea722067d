#include "muster/cli/jobs/task_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "muster/base/clock.h"

namespace muster::cli {
namespace {

using formats::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TaskBoardTest : public testing::Test {
 protected:
  TaskBoardTest() {
    EXPECT_EQ(pipe(ends_), 0);
    board_ = std::make_unique<TaskBoard>(ends_[1], clock_);
  }
  ~TaskBoardTest() override {
    board_.reset();
    close(ends_[0]);
    close(ends_[1]);
  }
  static Json MakeJob(int64_t step, int tasks = 2) {
    Json job = {{"name", "job"}, {"phase", "running"}, {"tasks", Json::array()}};
    for (int i = 0; i < tasks; ++i) {
      job["tasks"].push_back({{"task", i == 0 ? "chief-0" : "worker-" + std::to_string(i - 1)},
                              {"phase", "running"},
                              {"step", step}});
    }
    return job;
  }
  std::string Written() {
    char text[4096];
    const ssize_t size = read(ends_[0], text, sizeof text);
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }

  int ends_[2] = {-1, -1};
  FakeClock clock_;
  std::unique_ptr<TaskBoard> board_;
};

TEST_F(TaskBoardTest, ARowShowsStateStepAndRate) {
  board_->SetJob(MakeJob(100));
  clock_.Advance(4);
  board_->SetJob(MakeJob(150));
  EXPECT_THAT(board_->MakeRows(80, 24),
              ElementsAre("job  running", "  chief-0   running  step 150  12.5 steps/s",
                          "  worker-0  running  step 150  12.5 steps/s"));
}

TEST_F(TaskBoardTest, ProgressOfATaskIsItsRowUntilItIsOld) {
  board_->SetJob(MakeJob(100));
  EXPECT_TRUE(
      board_->ConsumeProgress("chief-0", "train  step 100/500  36k examples/s  loss 0.5000"));
  EXPECT_FALSE(board_->ConsumeProgress("chief-0", "train steps to go"));
  EXPECT_FALSE(board_->ConsumeProgress("chief-0", "Evaluated step 100: auc 0.8"));
  EXPECT_EQ(board_->MakeRows(80, 24)[1],
            "  chief-0   running  step 100/500  36k examples/s  loss 0.5000");
  clock_.Advance(60);
  EXPECT_EQ(board_->MakeRows(80, 24)[1], "  chief-0   running  step 100");
}

TEST_F(TaskBoardTest, NoRowIsWiderThanTheTerminalAndNoBlockHigher) {
  board_->SetJob(MakeJob(100, 40));
  board_->ConsumeProgress("chief-0", "train  step 1/2  " + std::string(200, 'x'));
  const auto rows = board_->MakeRows(60, 10);
  EXPECT_THAT(rows, testing::SizeIs(9));
  EXPECT_EQ(rows.back(), "  and 33 more");
  for (const std::string& row : rows) EXPECT_LT(row.size(), 60u);
}

TEST_F(TaskBoardTest, TheBlockIsWrittenInPlaceAndRemoved) {
  board_->SetJob(MakeJob(100));
  board_->Draw();
  EXPECT_THAT(Written(), testing::StartsWith("job  running\x1b[K\n"));
  clock_.Advance(1);
  board_->Draw();
  EXPECT_THAT(Written(), testing::StartsWith("\x1b[3A\rjob  running"));
  board_->Draw();  // it draws only once within a tenth of a second
  board_->Clear();
  EXPECT_EQ(Written(), "\x1b[3A\r\x1b[J");
}

}  // namespace
}  // namespace muster::cli
