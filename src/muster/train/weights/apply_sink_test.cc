#include "muster/train/weights/apply_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "muster/checkpoint/frozen_tensors.h"
#include "muster/train/weights/update.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An engine with a kernel, a table, a state and a variable without entries, whose optimizer
// subtracts each gradient, entry by entry, and counts its steps.
class FunctionEngine final : public engine::Engine, private engine::Updater {
 public:
  FunctionEngine() : specs_(4) {
    specs_[0] = {.name = "kernel", .shape = {2}, .initializer = {}};
    specs_[1] = {
        .name = "table", .kind = engine::VariableKind::kTable, .shape = {3, 1}, .initializer = {}};
    specs_[2] = {
        .name = "mean", .kind = engine::VariableKind::kState, .shape = {1}, .initializer = {}};
    specs_[3] = {.name = "nothing", .shape = {0}, .initializer = {}};
  }
  absl::Status failure;

  std::span<const engine::VariableSpec> variables() const override { return specs_; }
  int logits_dimension() const override { return 1; }
  absl::StatusOr<engine::StepResult> Step(std::span<const engine::VariableView>,
                                          const features::FeatureBatch&, const engine::StepContext&,
                                          engine::GradientSink&) override {
    return engine::StepResult();
  }
  std::span<const engine::TableUse> table_uses() const override { return {}; }
  absl::Status Predict(std::span<const engine::VariableView>, const features::FeatureBatch&,
                       engine::Forward*) override {
    return absl::OkStatus();
  }
  engine::Updater* updater() override { return this; }

 private:
  bool has_learning_rate() const override { return false; }
  absl::StatusOr<float> LearningRate(int64_t) override { return 0; }
  bool applies() const override { return true; }
  const std::string& name() const override { return name_; }
  std::span<const engine::UpdaterSlot> slots() const override { return slots_; }
  absl::Status Apply(std::span<const engine::VariableView> weights,
                     std::span<const std::span<char>> slots,
                     std::span<const engine::VariableGradient> gradients, int64_t step) override {
    if (!failure.ok()) return failure;
    for (int i = 0; i < 2; ++i) weights[0].data[i] -= gradients[0].values[i];
    for (size_t i = 0; i < gradients[1].rows.size(); ++i) {
      weights[1].data[gradients[1].rows[i]] -= gradients[1].values[i];
    }
    std::memcpy(slots[0].data(), &step, sizeof step);
    return absl::OkStatus();
  }

  std::vector<engine::VariableSpec> specs_;
  const std::string name_ = "Mine";
  const std::vector<engine::UpdaterSlot> slots_ = {{"slot_000", formats::DataType::kInt64, {}},
                                                   {"slot_001", formats::DataType::kBool, {3}}};
};

class ApplySinkTest : public testing::Test {
 protected:
  ApplySinkTest() {
    auto engine = std::make_unique<FunctionEngine>();
    engine_ = engine.get();
    model_.engine = std::move(engine);
    model_.applies = true;
    variables_ = Variables::Create(model_, /*seed=*/1, /*with_slots=*/true).value();
  }
  std::span<float> Weights(int variable) {
    const engine::VariableView& view = variables_->views()[static_cast<size_t>(variable)];
    return {view.data, static_cast<size_t>(view.rows * view.cols)};
  }
  int64_t Count() const {
    int64_t count = 0;
    std::memcpy(&count, variables_->updater_slots()[0].data(), sizeof count);
    return count;
  }

  model::Model model_;
  FunctionEngine* engine_ = nullptr;
  std::unique_ptr<Variables> variables_;
};

TEST_F(ApplySinkTest, AVariableWithoutEntriesIsHereAndSaved) {
  EXPECT_NE(variables_->views()[3].data, nullptr);
  EXPECT_FALSE(variables_->Tensors(/*with_slots=*/true)[3].is_elsewhere);
}

TEST_F(ApplySinkTest, AllGradientsAreAppliedAtOnce) {
  UpdateSink next(model_, *variables_);
  ApplySink sink(*engine_->updater(), *variables_, next);
  EXPECT_TRUE(sink.WantsEntries(1));
  for (int64_t step = 5; step < 7; ++step) {
    sink.set_step(step);
    sink.Statistic(2, std::vector<float>{7});
    sink.Rows(1, std::vector<int32_t>{2, 0, 2}, std::vector<float>{1, 2, 4});
    sink.Dense(0, std::vector<float>{1, -1});
    EXPECT_THAT(Weights(0), ElementsAre(5 - step, step - 5)) << "not before Finish";
    ASSERT_TRUE(sink.Finish().ok());
    EXPECT_EQ(Count(), step);
  }
  EXPECT_THAT(Weights(0), ElementsAre(-2, 2));
  EXPECT_THAT(Weights(1), ElementsAre(-4, 0, -10));
  EXPECT_THAT(Weights(2), ElementsAre(7));
}

TEST_F(ApplySinkTest, AStepWithoutGradientsChangesNothing) {
  UpdateSink next(model_, *variables_);
  ApplySink sink(*engine_->updater(), *variables_, next);
  engine_->failure = absl::InternalError("the updater must not be called");
  EXPECT_TRUE(sink.Finish().ok());
  sink.Dense(0, std::vector<float>{1, -1});
  EXPECT_THAT(ToStd(sink.Finish().message()), HasSubstr("the updater must not be called"));
  EXPECT_THAT(Weights(0), ElementsAre(0, 0));
}

TEST_F(ApplySinkTest, SlotsAreSavedInTheirTypes) {
  const auto tensors = variables_->Tensors(/*with_slots=*/true);
  ASSERT_EQ(tensors.size(), 6u);
  EXPECT_EQ(tensors[4].name, "training/Mine/slot_000");
  EXPECT_EQ(tensors[4].type, formats::DataType::kInt64);
  EXPECT_EQ(tensors[4].bytes.size(), 8u);
  EXPECT_EQ(tensors[5].name, "training/Mine/slot_001");
  EXPECT_EQ(tensors[5].bytes.size(), 3u);
  EXPECT_EQ(variables_->UpdaterTensors("optimizer")[1].name, "optimizer/slot_001");
  EXPECT_EQ(variables_->Tensors(/*with_slots=*/false).size(), 4u);
  const auto without = Variables::Create(model_, /*seed=*/1, /*with_slots=*/false).value();
  EXPECT_TRUE(without->UpdaterTensors("optimizer").empty());
}

// A save that is still running when the next step is applied writes the values from when it began.
TEST_F(ApplySinkTest, ASaveInTheBackgroundSeesNoLaterStep) {
  UpdateSink next(model_, *variables_);
  ApplySink sink(*engine_->updater(), *variables_, next);
  checkpoint::FrozenTensors frozen;
  const auto tensors = variables_->Tensors(/*with_slots=*/true);
  variables_->set_frozen(&frozen);
  frozen.Prepare(tensors);
  std::vector<char> before;
  for (const auto& tensor : tensors) {
    before.insert(before.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  frozen.Freeze(tensors);
  sink.set_step(9);
  sink.Rows(1, std::vector<int32_t>{1}, std::vector<float>{3});
  sink.Dense(0, std::vector<float>{1, 1});
  ASSERT_TRUE(sink.Finish().ok());
  std::vector<char> saved(before.size());
  frozen.Read(saved);
  frozen.Thaw();
  EXPECT_EQ(saved, before);
  EXPECT_EQ(Count(), 9);
}

}  // namespace
}  // namespace muster::train
