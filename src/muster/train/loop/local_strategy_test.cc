#include "muster/train/loop/local_strategy.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "muster/tables/dynamic_table_image.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// One table, which grows.
constexpr std::string_view kKeysSpec = R"(
inputs: {id: int, x: float, color: string, y: int}
label: y
key: id
columns: {color: {keys: color}}
model: {type: linear, linear: {columns: [color], optimizer: {ftrl: {learning_rate: 0.1}}}}
train: {batch_size: 16, epochs: 1, seed: 5}
)";

// Counts the batches that are read.
class CountedInput : public BatchSource {
 public:
  CountedInput(std::unique_ptr<BatchSource> input, int* reads)
      : input_(std::move(input)), reads_(reads) {}
  absl::StatusOr<const InputBatch*> Next() override {
    ++*reads_;
    return input_->Next();
  }

 private:
  const std::unique_ptr<BatchSource> input_;
  int* const reads_;
};

// Asks to stop after step 3, or before the next one.
class StopAtThree : public Hook {
 public:
  explicit StopAtThree(bool before) : before_(before) {}
  absl::Status BeforeRun(Session& session) override {
    if (before_ && session.step == 3) session.RequestStop("");
    return absl::OkStatus();
  }
  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (!before_ && session.step == 3) session.RequestStop("");
    return absl::OkStatus();
  }

 private:
  const bool before_;
};

class LocalStrategyTest : public TrainingTest {
 protected:
  // Opens a strategy and the data.
  void Open(std::string_view yaml = kTestSpec) {
    const auto spec = model::ParseModelSpec(*files_, yaml, "spec.yaml");
    ASSERT_TRUE(spec.ok()) << spec.status();
    model_ = model::BuildModel(*spec, {}).value();
    variables_ = Variables::Create(model_, 5, /*with_slots=*/true).value();
    session_.emplace(Session{.files = *files_,
                             .clock = clock_,
                             .config = config_,
                             .model = model_,
                             .variables = *variables_,
                             .events = nullptr,
                             .progress = progress_});
    session_->data.positions = {"that of the checkpoint"};
    session_->data.records.emplace();
    strategy_ = std::make_unique<LocalStrategy>(*session_);
    ASSERT_TRUE(strategy_->Open().ok());
    input_ = Input::Open(*files_, model_, Training().input).value();
    strategy_->DataOpened(*input_);
  }

  const InputBatch* NextBatch() { return input_->Next().value(); }

  Strategy::Result Run(const InputBatch* batch) {
    const auto result = strategy_->Run(batch, Strategy::Stop::kNo);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(Strategy::Result());
  }

  std::map<std::string, std::string> State() const {
    std::map<std::string, std::string> state;
    for (const checkpoint::Tensor& tensor : variables_->Tensors(/*with_slots=*/true)) {
      state[tensor.name] = {tensor.bytes.data(), tensor.bytes.size()};
    }
    return state;
  }

  RunConfig config_ = Config("model");
  Progress progress_{ProgressStyle::kNone, 2, clock_};
  model::Model model_;
  std::unique_ptr<Variables> variables_;
  std::optional<Session> session_;
  std::unique_ptr<BatchSource> input_;
  std::unique_ptr<LocalStrategy> strategy_;
};

TEST_F(LocalStrategyTest, AStepUpdatesWeightsCountsAndPosition) {
  Open();
  EXPECT_THAT(session_->data.positions, ElementsAre());
  const auto before = State();
  const InputBatch* const batch = NextBatch();
  const Strategy::Result result = Run(batch);
  EXPECT_EQ(result.outcome, Strategy::Outcome::kDone);
  EXPECT_EQ(result.values.rows, 16);
  EXPECT_GT(result.values.loss, 0);
  EXPECT_NE(State(), before);
  EXPECT_EQ(session_->step, 1);
  EXPECT_EQ(session_->previous_step, -1);
  EXPECT_EQ(session_->data.records, (RecordCounts{.trained = 16}));
  ASSERT_TRUE(session_->data.position.has_value());
  EXPECT_EQ(data::SerializePosition(*session_->data.position),
            data::SerializePosition(batch->position));
}

TEST_F(LocalStrategyTest, ABatchThatWasReadIsTrainedOnDespiteAStopRequest) {
  Open();
  const auto result = strategy_->Run(NextBatch(), Strategy::Stop::kInterrupted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome, Strategy::Outcome::kDone);
  EXPECT_EQ(session_->step, 1);
}

TEST_F(LocalStrategyTest, TheEndOfTheDataEndsTheTraining) {
  Open();
  const auto before = State();
  EXPECT_EQ(Run(nullptr).outcome, Strategy::Outcome::kOver);
  EXPECT_EQ(State(), before);
  EXPECT_EQ(session_->step, 0);
  EXPECT_EQ(strategy_->WaitForOthers().value(), Strategy::Ending::kOver);
}

TEST_F(LocalStrategyTest, ALossThatIsNotFiniteMakesNoStep) {
  Open();
  for (const engine::VariableView& view : variables_->views()) {
    std::fill_n(view.data, view.rows * view.cols, std::numeric_limits<float>::quiet_NaN());
  }
  const auto before = State();
  const Strategy::Result result = Run(NextBatch());
  EXPECT_EQ(result.outcome, Strategy::Outcome::kNotFinite);
  EXPECT_TRUE(std::isnan(result.values.loss));
  EXPECT_EQ(State(), before);
  EXPECT_EQ(session_->step, 0);
  EXPECT_EQ(session_->data.records, (RecordCounts{.dropped = 16}));
}

TEST_F(LocalStrategyTest, DataWithoutPositionsGivesTheSessionNone) {
  Open();
  const InputBatch* const batch = NextBatch();
  const auto input = BatchesInput({batch->features})(*files_, model_, nullptr).value();
  strategy_->DataOpened(*input);
  EXPECT_EQ(Run(input->Next().value()).outcome, Strategy::Outcome::kDone);
  EXPECT_FALSE(session_->data.position.has_value());
}

TEST_F(LocalStrategyTest, TheTraceHasEachUpdateWithinTheStep) {
  Open();
  StepTrace trace(clock_);
  session_->trace = &trace;
  Run(NextBatch());
  session_->trace = nullptr;
  Run(NextBatch());
  std::vector<std::string> names;
  for (const StepTrace::Span& span : trace.spans()) names.push_back(span.name);
  // A span is added when it ends: the span of the step comes after those within it.
  ASSERT_EQ(names.size(), variables_->specs().size() + 1);
  EXPECT_EQ(names.back(), "forward-backward");
  names.pop_back();
  EXPECT_THAT(names, testing::Each("update"));
}

TEST_F(LocalStrategyTest, TablesThatGrowAreFetchedForASave) {
  Open(kKeysSpec);
  const auto table = std::ranges::find_if(
      variables_->specs(),
      [](const engine::VariableSpec& spec) { return spec.growth.has_value(); });
  ASSERT_NE(table, variables_->specs().end());
  const tables::DynamicTableImage& image =
      *variables_->dynamic_tables(static_cast<int>(table - variables_->specs().begin()));
  Run(NextBatch());
  EXPECT_EQ(image.keys.size(), 0u);
  EXPECT_TRUE(strategy_->must_fetch_state());
  ASSERT_TRUE(strategy_->FetchState().ok());
  EXPECT_EQ(image.keys.size(), 3u);  // the colors
  EXPECT_THAT(image.weights, Contains(Not(0)));
}

TEST_F(LocalStrategyTest, WithoutTablesThatGrowNoStateIsFetched) {
  Open();
  EXPECT_FALSE(strategy_->must_fetch_state());
}

TEST_F(LocalStrategyTest, NoBatchIsReadAfterAStopRequest) {
  for (const bool before : {false, true}) {
    int reads = 0;
    TrainSpec spec = Training();
    spec.input_fn = [&](io::FileSystem& files, const model::Model& model, const data::Position*) {
      std::unique_ptr<BatchSource> input = Input::Open(files, model, Training().input).value();
      return std::make_unique<CountedInput>(std::move(input), &reads);
    };
    spec.hooks = {std::make_shared<StopAtThree>(before)};
    const auto result = Train(StrCat("model", before), spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->step, 3);
    EXPECT_EQ(reads, 3) << (before ? "before" : "after");
  }
}

}  // namespace
}  // namespace muster::train
