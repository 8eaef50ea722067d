#include "muster/checkpoint/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/checkpoint/best.h"
#include "muster/checkpoint/checkpoint_state.h"
#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;

TEST(SaverTest, KeepsTheNewest) {
  const auto files = io::NewMemoryFileSystem();
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(SaveStep(*files, step, static_cast<float>(step), 2).ok());
  }
  EXPECT_THAT(*files->List("m"),
              ElementsAre("checkpoint", "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index",
                          "model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index"));
  const auto state = ReadState(*files, "m");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->latest, "model.ckpt-5");
  EXPECT_THAT(state->all, ElementsAre("model.ckpt-4", "model.ckpt-5"));
}

TEST(SaverTest, KeepsTheBestInAddition) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*files, 1, 1, 2).ok());
  ASSERT_TRUE(WriteBest(*files, "m", {.name = "model.ckpt-1", .step = 1, .metric = "auc"}).ok());
  for (int step = 2; step <= 5; ++step) ASSERT_TRUE(SaveStep(*files, step, 1, 2).ok());
  EXPECT_THAT(ReadState(*files, "m")->all,
              ElementsAre("model.ckpt-1", "model.ckpt-4", "model.ckpt-5"));
  EXPECT_TRUE(files->Stat("m/model.ckpt-1.index").ok());
  ASSERT_TRUE(WriteBest(*files, "m", {.name = "model.ckpt-5", .step = 5, .metric = "auc"}).ok());
  for (int step = 6; step <= 9; ++step) ASSERT_TRUE(SaveStep(*files, step, 1, 2).ok());
  EXPECT_THAT(ReadState(*files, "m")->all,
              ElementsAre("model.ckpt-5", "model.ckpt-8", "model.ckpt-9"));
}

TEST(SaverTest, KeepZeroKeepsAll) {
  const auto files = io::NewMemoryFileSystem();
  for (int step = 0; step < 9; ++step) ASSERT_TRUE(SaveStep(*files, step, 1, 0).ok());
  EXPECT_EQ(ReadState(*files, "m")->all.size(), 9u);
}

TEST(SaverTest, AFullDiskTellsWhatACheckpointNeeds) {
  const auto memory = io::NewMemoryFileSystem();
  io::FaultFileSystem files(*memory);
  files.FillDiskAfter(100);
  std::vector<char> bytes(1'600'000);
  const Tensor tensor = {"kernel", formats::DataType::kFloat, {400'000}, bytes};
  const absl::Status status = Saver(files, "m").Save(7, {&tensor, 1}, {}, 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(ToStd(status.message()),
              ::testing::AllOf(::testing::StartsWith("saving m/model.ckpt-7 (2 MB): "),
                               ::testing::HasSubstr("make room: this one is written before")));
}

// The numbers of "1 2.5 3".
std::vector<double> Numbers(std::string_view text) {
  std::vector<double> numbers;
  for (const auto word : absl::StrSplit(ToAbsl(text), ' ', absl::SkipEmpty())) {
    double number = 0;
    EXPECT_TRUE(absl::SimpleAtod(word, &number)) << word;
    numbers.push_back(number);
  }
  return numbers;
}

// Saves steps 0, 1, ... at those hours after `start`, each by a Saver of its own where `restart`.
std::vector<double> StepsKept(const SaverOptions& options, const std::vector<double>& hours,
                              bool restart) {
  const auto files = io::NewMemoryFileSystem();
  auto saver = std::make_unique<Saver>(*files, "m", options);
  Weights weights;
  for (size_t step = 0; step < hours.size(); ++step) {
    EXPECT_TRUE(saver
                    ->Save(static_cast<int64_t>(step), weights.tensors(), {},
                           options.start_seconds + hours[step] * 3600)
                    .ok());
    if (!restart) continue;
    SaverOptions later = options;
    later.start_seconds += 100 * 3600;
    saver = std::make_unique<Saver>(*files, "m", later);
  }
  std::vector<double> kept;
  for (size_t step = 0; step < hours.size(); ++step) {
    if (files->Stat(StrCat("m/model.ckpt-", step, ".index")).ok()) {
      kept.push_back(static_cast<double>(step));
    }
  }
  return kept;
}

TEST(SaverTest, KeepsOneOfEveryNHoursAsTensorFlowDoes) {
  const auto text = io::ReadFile(*io::NewLocalFileSystem(), MUSTER_TESTDATA "/kept.txt");
  ASSERT_TRUE(text.ok()) << text.status();
  int schedules = 0;
  for (const auto piece : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::string line(piece);
    if (line.starts_with('#')) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '|');
    ASSERT_EQ(parts.size(), 3u) << line;
    const std::vector<double> how = Numbers(parts[0]);
    const SaverOptions options = {
        .keep_max = static_cast<int>(how[0]), .keep_every_n_hours = how[1], .start_seconds = kNow};
    for (const bool restart : {false, true}) {
      EXPECT_EQ(StepsKept(options, Numbers(parts[1]), restart), Numbers(parts[2])) << line;
    }
    ++schedules;
  }
  EXPECT_EQ(schedules, 5);
}

TEST(SaverTest, PeriodsDoNotAddUpDuringAPause) {
  const SaverOptions options = {.keep_max = 1, .keep_every_n_hours = 1, .start_seconds = kNow};
  EXPECT_THAT(StepsKept(options, {0.5, 50.1, 50.2, 50.3, 50.4, 50.5}, true), ElementsAre(1, 5));
}

TEST(SaverTest, AClockThatIsSetBackChangesNothing) {
  const SaverOptions options = {.keep_max = 2, .keep_every_n_hours = 1, .start_seconds = kNow};
  EXPECT_THAT(StepsKept(options, {0.1, 0.2, -90, -89.9, -89.8}, false), ElementsAre(3, 4));
}

TEST(SaverTest, AStateFileWithoutTimesIsContinued) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {1, 2}) ASSERT_TRUE(SaveStep(*files, step, 1, 2).ok());
  ASSERT_TRUE(
      WriteState(*files, "m", {"model.ckpt-2", {"model.ckpt-1", "model.ckpt-2"}, {}, 0}).ok());
  ASSERT_TRUE(SaveStep(*files, 3, 1, 2).ok());
  const CheckpointState expected = {
      "model.ckpt-3", {"model.ckpt-2", "model.ckpt-3"}, {kNow, kNow}, kNow};
  EXPECT_EQ(*ReadState(*files, "m"), expected);
}

}  // namespace
}  // namespace muster::checkpoint
