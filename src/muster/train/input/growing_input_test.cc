#include "muster/train/input/growing_input.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Files as segments.
class FilesAsSegments : public data::GrowingData {
 public:
  absl::StatusOr<std::optional<data::DataSegment>> GetSegment(io::FileSystem&,
                                                              int64_t number) override {
    if (number >= std::ssize(segments)) {
      when_none();
      return std::nullopt;
    }
    return segments[static_cast<size_t>(number)];
  }
  absl::StatusOr<uint64_t> CountLater() override { return 1'000; }

  std::vector<data::DataSegment> segments;
  std::function<void()> when_none = [] {};
};

// Three segments: 3 steps, 1 step and 1 smaller one.
constexpr int kSteps = 5, kGrown = 63;

class GrowingInputTest : public TrainingTest {
 protected:
  GrowingInputTest() {
    const std::string all = Csv(kGrown);
    Write("all.csv", all);
    std::vector<std::string> lines;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      end = all.find('\n', begin) + 1;
      lines.push_back(all.substr(begin, end - begin));
    }
    auto line = lines.begin() + 1;
    for (const int rows : {40, 16, 7}) {
      const std::string name = StrCat("segment-", growth_->segments.size(), ".csv");
      std::string text = lines[0];
      for (int i = 0; i < rows; ++i) text += *line++;
      Write(name, text);
      growth_->segments.push_back({.patterns = {name}, .records = static_cast<uint64_t>(rows)});
    }
    growth_->when_none = [this] { stop_ = true; };
  }

  TrainSpec Following() const {
    TrainSpec spec = Training("no such file");
    spec.input.reader.epochs = 1;
    spec.input.growth = growth_;
    return spec;
  }

  absl::StatusOr<TrainResult> Follow(const std::string& folder, const TrainSpec& spec,
                                     ProgressStyle style = ProgressStyle::kNone, int fd = 2) {
    stop_ = false;
    Progress progress(style, fd, clock_);
    return NewEstimator(kTestSpec, folder)->Train(spec, progress, stop_);
  }

  int64_t SavedStep(const std::string& folder) {
    const auto latest = checkpoint::FindLatest(*files_, folder);
    const auto bundle =
        latest.ok() ? formats::BundleReader::Open(*files_, latest->prefix)
                    : absl::StatusOr<std::unique_ptr<formats::BundleReader>>(latest.status());
    return bundle.ok() ? checkpoint::GlobalStep(**bundle).value_or(-1) : -1;
  }

  std::shared_ptr<FilesAsSegments> growth_ = std::make_shared<FilesAsSegments>();
  std::atomic<bool> stop_ = false;
};

TEST_F(GrowingInputTest, ATrainingTakesEachSegmentOnceAndStopsWhileItWaits) {
  const auto result = Follow("m", Following());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->step, kSteps);
  ASSERT_TRUE(result->records.has_value());
  EXPECT_EQ(result->records->trained, kGrown);
  EXPECT_EQ(result->records->repeated, 0);
  EXPECT_EQ(SavedStep("m"), kSteps);
}

TEST_F(GrowingInputTest, WholeBatchesInOrderAreThoseOfOneFile) {
  growth_->segments = {{.patterns = {"all.csv"}, .records = kGrown}};
  TrainSpec spec = Following();
  spec.input.reader.shuffle = false;
  ASSERT_TRUE(Follow("grown", spec).ok());
  TrainSpec file = Training("all.csv");
  file.input.reader.shuffle = false;
  file.input.reader.epochs = 1;
  ASSERT_TRUE(Train("file", file).ok());
  EXPECT_EQ(Weights("grown"), Weights("file"));
}

TEST_F(GrowingInputTest, ATrainingThatStoppedAnywhereContinuesExactly) {
  ASSERT_TRUE(Follow("whole", Following()).ok());
  for (int step = 1; step <= kSteps; ++step) {
    const std::string folder = StrCat("stopped-", step);
    TrainSpec first = Following();
    first.max_steps = step;
    ASSERT_TRUE(Follow(folder, first).ok());
    const auto result = Follow(folder, Following());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->first_step, step);
    EXPECT_EQ(result->step, kSteps);
    EXPECT_EQ(result->records->trained, kGrown);
    EXPECT_EQ(Weights(folder), Weights("whole")) << "stopped at step " << step;
  }
}

TEST_F(GrowingInputTest, EachSegmentIsShuffledInAnotherWay) {
  growth_->segments = {{.patterns = {"all.csv"}, .records = kGrown},
                       {.patterns = {"all.csv"}, .records = kGrown}};
  auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto model = model::BuildModel(*spec);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto input = OpenGrowing(*files_, *model, Following().input, nullptr);
  ASSERT_TRUE(input.ok()) << input.status();
  std::vector<std::vector<float>> by_segment(2);
  while (true) {
    const auto batch = (*input)->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    if ((*batch)->is_none_yet) break;
    EXPECT_EQ((*batch)->position.epoch, (*batch)->epoch);
    EXPECT_EQ((*input)->lag(), 1'000 + kGrown - (*batch)->position.emitted);
    auto& values = by_segment[static_cast<size_t>((*batch)->epoch)];
    const auto& column = (*batch)->features.dense[0].values;
    values.insert(values.end(), column.begin(), column.end());
  }
  EXPECT_EQ((*input)->lag(), 1'000);
  EXPECT_EQ(by_segment[0].size(), kGrown);
  EXPECT_NE(by_segment[0], by_segment[1]);
  for (auto& values : by_segment) std::ranges::sort(values);
  EXPECT_EQ(by_segment[0], by_segment[1]);
}

TEST_F(GrowingInputTest, APositionInASegmentThatIsNotThereIsRefused) {
  ASSERT_TRUE(Follow("m", Following()).ok());
  growth_->segments.pop_back();
  const auto result = Follow("m", Following());
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status()));
  EXPECT_THAT(ToStd(result.status().message()), HasSubstr("--fresh-data"));
}

TEST_F(GrowingInputTest, BadRecordsOfAllSegmentsAreCounted) {
  Write("segment-0.csv", "id,x,color,y\n1,nonsense,red,0\n2,0.5,red,0\n");
  Write("segment-2.csv", "id,x,color,y\n1,0.5,red,0\n2,nonsense,red,0\n");
  TrainSpec spec = Following();
  spec.input.reader.max_bad_records = 1;  // of each segment
  const auto result = Follow("m", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->bad_records, 2);
}

TEST_F(GrowingInputTest, WhatWasTrainedIsSavedWhileTheTrainingWaits) {
  int calls = 0;
  growth_->when_none = [&] {
    if (calls++ == 0) {
      EXPECT_LT(SavedStep("m"), kSteps);
      clock_.Advance(601);  // saves come every 600 seconds
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for the thread that saves
    if (SavedStep("m") == kSteps || calls > 60'000) stop_ = true;
  };
  ASSERT_TRUE(Follow("m", Following()).ok());
  EXPECT_LE(calls, 60'000) << "not saved before the end";
}

TEST_F(GrowingInputTest, ATrainingThatWaitsAndIsReplacedEnds) {
  int calls = 0;
  growth_->when_none = [&] {
    if (calls++ == 0) {
      EXPECT_TRUE(files_->Remove("m/muster.lease").ok());
    }
    clock_.Advance(2);
    stop_ = calls > 2;
  };
  const auto result = Follow("m", Following());
  EXPECT_TRUE(absl::IsAborted(result.status())) << result.status();
  EXPECT_EQ(calls, 1);
}

TEST_F(GrowingInputTest, AHookEndsTheWait) {
  struct StopsWhileWaiting : Hook {
    absl::Status WhileWaiting(Session& session) override {
      steps.push_back(session.step);
      if (steps.size() == 3) session.RequestStop("enough");
      return absl::OkStatus();
    }
    std::vector<int64_t> steps;
  };
  growth_->when_none = [] {};
  const auto hook = std::make_shared<StopsWhileWaiting>();
  TrainSpec spec = Following();
  spec.hooks.push_back(hook);
  const auto result = Follow("m", spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->interrupted);
  EXPECT_EQ(result->stop_reason, "enough");
  EXPECT_THAT(hook->steps, ElementsAre(kSteps, kSteps, kSteps));
}

TEST_F(GrowingInputTest, ProgressTellsTheLagOnceAWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  int calls = 0;
  growth_->when_none = [&] {
    clock_.Advance(6);
    stop_ = ++calls == 4;
  };
  ASSERT_TRUE(Follow("m", Following(), ProgressStyle::kLog, ends[1]).ok());
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;  // in the wait, and at the end
  EXPECT_THAT(text, HasSubstr("train  step 5  "));
  EXPECT_THAT(text, HasSubstr("  lag 1,000  "));
}

}  // namespace
}  // namespace muster::train
