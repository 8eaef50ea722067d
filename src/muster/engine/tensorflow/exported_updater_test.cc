#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/tensorflow/test_model.h"
#include "muster/engine/updater.h"

namespace muster::engine::tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Number>
std::span<char> ToChars(std::vector<Number>& numbers) {
  return {reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

class UpdaterTest : public testing::Test {
 protected:
  void SetUp() override { Open(FunctionGraph()); }
  void Open(const std::string& graph) {
    folder_.WriteGraph(graph);
    folder_.Write("model.json", FunctionManifest());
    auto model = OpenKerasExport(*files_, folder_.path());
    ASSERT_TRUE(model.ok()) << model.status();
    auto engine = NewTensorFlowEngine(
        *files_, *std::move(model),
        {.library_folder = MUSTER_FAKE_TENSORFLOW, .environment = process::CurrentEnvironment()});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    ASSERT_NE(engine_->updater(), nullptr);
  }
  absl::Status Apply(int64_t step) {
    const std::vector<VariableView> weights = {
        {kernel_.data(), 2, 2}, {table_.data(), table_rows_, 2}, {mean_.data(), 2, 1}};
    const std::vector<std::span<char>> slots = {ToChars(count_), ToChars(seen_)};
    const std::vector<VariableGradient> gradients = {
        {.values = kernel_gradient_}, {.values = entries_, .rows = rows_}, {}};
    return engine_->updater()->Apply(weights, slots, gradients, step);
  }

  const ModelFolder folder_;
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::unique_ptr<TensorFlowEngine> engine_;
  std::vector<float> kernel_ = {1, 2, 3, 4}, kernel_gradient_ = {5, 6, 7, 8};
  std::vector<float> table_ = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
  int64_t table_rows_ = 5;
  std::vector<int32_t> rows_ = {3, 0, 3, 1};
  std::vector<float> entries_ = std::vector<float>(8, 1);
  std::vector<float> mean_ = {9, 9};
  std::vector<int64_t> count_ = {0};
  std::vector<int32_t> seen_ = {0, 0, 0, 0};
};

TEST_F(UpdaterTest, KnowsTheModelsOptimizer) {
  Updater& updater = *engine_->updater();
  EXPECT_TRUE(updater.applies());
  EXPECT_TRUE(updater.has_learning_rate());
  EXPECT_EQ(updater.name(), "SGD");
  ASSERT_EQ(updater.slots().size(), 2u);
  EXPECT_EQ(updater.slots()[0].name, "slot_000");
  EXPECT_EQ(updater.slots()[0].bytes(), 8u);
  EXPECT_EQ(updater.slots()[1].bytes(), 16u);
  for (const int64_t step : {7, 0, 123'456}) {
    const auto rate = updater.LearningRate(step);
    ASSERT_TRUE(rate.ok()) << rate.status();
    EXPECT_EQ(*rate, static_cast<float>(step));
  }
}

TEST_F(UpdaterTest, ReplacesWeightsAndSlotsOfAnyType) {
  const absl::Status applied = Apply(12);
  ASSERT_TRUE(applied.ok()) << applied;
  EXPECT_THAT(kernel_, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(table_, ElementsAre(0, 1, 10, 11, 20, 21, 30, 31, 40, 41));
  EXPECT_THAT(mean_, ElementsAre(9, 9));
  EXPECT_THAT(count_, ElementsAre(12));
  EXPECT_THAT(seen_, ElementsAre(3, 0, 3, 1)) << "one row for each entry, so rows repeat";
}

TEST_F(UpdaterTest, AnErrorChangesNothing) {
  // Five rows do not fit a slot of four.
  rows_.push_back(2);
  entries_.resize(10);
  const absl::Status refused = Apply(12);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("step 12: the optimizer SGD gives a new value of "
                                           "slot_001 that does not have its type and shape"));
  EXPECT_THAT(kernel_, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(count_, ElementsAre(0));
}

TEST_F(UpdaterTest, ArgumentsThatDoNotFitAreRefused) {
  kernel_gradient_.pop_back();
  EXPECT_THAT(Apply(1).message(), HasSubstr("the gradient of kernel has 3 values, not 4"));
  kernel_gradient_.push_back(8);
  table_rows_ = 4;
  EXPECT_THAT(Apply(1).message(), HasSubstr("needs table table as a whole"));
  table_rows_ = 5;
  seen_.pop_back();
  EXPECT_THAT(Apply(1).message(), HasSubstr("slots and gradients are not those of the model"));
}

TEST_F(UpdaterTest, AHostThatDiesIsReplacedAndTheRequestRepeated) {
  engine_.reset();
  Open(FunctionGraph() + "fault kill 1 " + folder_.File("killed") + "\n");
  const absl::Status applied = Apply(12);
  ASSERT_TRUE(applied.ok()) << applied;
  EXPECT_EQ(engine_->host()->starts(), 2);
  EXPECT_THAT(kernel_, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(count_, ElementsAre(12));
}

TEST_F(UpdaterTest, AModelWithARuleHasNoUpdater) {
  const ModelFolder folder;
  folder.WriteGraph(TestGraph());
  folder.Write("model.json", TestManifest());
  const auto files = io::NewLocalFileSystem();
  const auto engine = NewTensorFlowEngine(
      *files, OpenKerasExport(*files, folder.path()).value(),
      {.library_folder = MUSTER_FAKE_TENSORFLOW, .environment = process::CurrentEnvironment()});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ((*engine)->updater(), nullptr);
}

}  // namespace
}  // namespace muster::engine::tensorflow
