#include "muster/train/loop/model_fn.h"

#include <algorithm>

#include "muster/engine/native/graph.h"
#include "muster/train/train_and_evaluate.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

// The mean of the logits' signs: a metric that no head has.
class PositiveShare : public EvalMetric {
 public:
  void Add(std::span<const float> logits, std::span<const float>, std::span<const float>) override {
    for (const float logit : logits) positive_ += logit > 0 ? 1 : 0;
    rows_ += static_cast<double>(logits.size());
  }
  double Value() const override { return positive_ / rows_; }

 private:
  double positive_ = 0, rows_ = 0;
};

class ModelFnTest : public TrainingTest {
 protected:
  ModelFnTest() : spec_(*model::ParseModelSpec(*files_, kTestSpec, "spec.yaml")) {}

  absl::StatusOr<EstimatorSpec> Model(ModeKeys mode) {
    ++calls_[mode];
    engine::native::GraphBuilder graph;
    const auto x = graph.DenseInput(0, 1);
    const auto color = graph.EmbeddingBag({.name = "color", .rows = 3, .dimension = 2});
    const auto hidden = graph.Dense(graph.Concat({x, color}), {.name = "hidden", .units = 4});
    const auto logits = graph.Dense(hidden, {.name = "logits", .units = 1, .group = 1});
    EstimatorSpec spec{.mode = mode, .request = {{"x"}, {"color"}}};
    spec.head.emplace();
    spec.optimizers = {{.kind = "adam"}, {.kind = "ftrl"}};
    spec.eval_metrics["positive/share"] = [] { return std::make_unique<PositiveShare>(); };
    MUSTER_ASSIGN_OR_RETURN(spec.engine, std::move(graph).Finish(logits, engine::NewBinaryHead()));
    return spec;
  }
  std::unique_ptr<Estimator> NewCustom(const std::string& folder) {
    auto estimator = Estimator::Create(
        *files_, clock_, spec_.features,
        [this](ModeKeys mode, const RunConfig&) { return Change(Model(mode)); }, Config(folder));
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    return std::move(*estimator);
  }
  absl::StatusOr<EstimatorSpec> Change(absl::StatusOr<EstimatorSpec> spec) {
    if (spec.ok() && change_) change_(&*spec);
    return spec;
  }

  model::ModelSpec spec_;
  std::map<ModeKeys, int> calls_;
  std::function<void(EstimatorSpec*)> change_;
  Progress progress_{ProgressStyle::kNone, 2, clock_};
};

TEST_F(ModelFnTest, TrainsEvaluatesAndPredicts) {
  const auto estimator = NewCustom("model");
  const auto result = TrainAndEvaluate(*estimator, Training(), Evaluation(), progress_, never_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->training.step, 57);
  std::map<std::string, double> metrics(result->evaluation->metrics.begin(),
                                        result->evaluation->metrics.end());
  EXPECT_GT(metrics["auc"], 0.75);
  EXPECT_GT(metrics["positive/share"], 0);
  EXPECT_LT(metrics["positive/share"], 1);
  EXPECT_EQ(result->evaluation->metrics.back().first, "global_step");
  uint64_t rows = 0;
  const auto take = [&](const InputBatch& batch, const engine::Predictions& predictions) {
    EXPECT_NE(predictions.Find("probabilities"), nullptr);
    rows += batch.features.rows;
    return absl::OkStatus();
  };
  InputSpec input;
  input.source.patterns = {"train.csv"};
  input.with_labels = false;
  ASSERT_TRUE(estimator->Predict(input, take, progress_).ok());
  EXPECT_EQ(rows, 300u);
  // Once for each mode.
  EXPECT_EQ(calls_, (std::map<ModeKeys, int>{
                        {ModeKeys::kTrain, 1}, {ModeKeys::kEval, 1}, {ModeKeys::kPredict, 1}}));
}

TEST_F(ModelFnTest, ResumesToTheSameBytes) {
  ASSERT_TRUE(NewCustom("whole")->Train(Training(), progress_, never_).ok());
  TrainSpec first = Training();
  first.max_steps = 20;
  ASSERT_TRUE(NewCustom("cut")->Train(first, progress_, never_).ok());
  ASSERT_TRUE(NewCustom("cut")->Train(Training(), progress_, never_).ok());
  EXPECT_TRUE(Weights("cut") == Weights("whole"));
}

TEST_F(ModelFnTest, HooksRunInTheirOrder) {
  class Note : public Hook {
   public:
    Note(std::string name, std::vector<std::string>* names)
        : name_(std::move(name)), names_(names) {}
    absl::Status AfterRun(Session& session, const StepValues&) override {
      names_->push_back(StrCat(name_, " ", ModeName(session.mode)));
      return absl::OkStatus();
    }

   private:
    const std::string name_;
    std::vector<std::string>* const names_;
  };
  std::vector<std::string> names;
  change_ = [&](EstimatorSpec* spec) {
    spec->training_chief_hooks = {std::make_shared<Note>("chief", &names)};
    spec->training_hooks = {std::make_shared<Note>("training", &names)};
    spec->evaluation_hooks = {std::make_shared<Note>("model's", &names)};
    spec->prediction_hooks = {std::make_shared<Note>("model's", &names)};
  };
  TrainSpec train = Training();
  train.max_steps = 1;
  train.hooks = {std::make_shared<Note>("user", &names)};
  EvalSpec eval = Evaluation();
  eval.steps = 1;
  eval.hooks = {std::make_shared<Note>("user", &names)};
  const auto estimator = NewCustom("model");
  ASSERT_TRUE(TrainAndEvaluate(*estimator, train, eval, progress_, never_).ok());
  PredictSpec predict{.input = eval.input, .hooks = {std::make_shared<Note>("user", &names)}};
  predict.input.reader.batch_size = 300;
  predict.input.with_labels = false;
  const auto take = [](const InputBatch&, const engine::Predictions&) { return absl::OkStatus(); };
  ASSERT_TRUE(estimator->Predict(predict, take, progress_).ok());
  EXPECT_THAT(names,
              testing::ElementsAre("chief train", "user train", "training train", "user eval",
                                   "model's eval", "user predict", "model's predict"));
}

// Writes an event after each step, and records the effects of earlier hooks.
class Marker : public Hook {
 public:
  explicit Marker(std::string name) : name_(std::move(name)) {}
  absl::Status AfterRun(Session& session, const StepValues&) override {
    saved = session.checkpoint.step == session.step;
    stopped = session.ending.requested;
    ++steps;
    return session.events->WriteScalars(session.step, {{name_, 1.0f}});
  }
  bool saved = false, stopped = false;
  int steps = 0;

 private:
  const std::string name_;
};

// The order is CheckpointSaver, training_chief_hooks, StepCounter, SummarySaver, the user's hooks,
// StopAtStep, NanTensor, training_hooks. Hooks that write events show it by the order of events,
// the others by their effect on later hooks.
TEST_F(ModelFnTest, TheEstimatorsOwnHooksRunInTheirOrder) {
  const auto chief = std::make_shared<Marker>("chief"), user = std::make_shared<Marker>("user"),
             last = std::make_shared<Marker>("last");
  bool diverges = false;
  change_ = [&](EstimatorSpec* spec) {
    spec->training_chief_hooks = {chief};
    spec->training_hooks = {last};
    if (diverges) spec->optimizers[0].learning_rate = spec->optimizers[1].learning_rate = 1e30;
  };
  TrainSpec train = Training();
  train.max_steps = 3;
  train.hooks = {user};
  RunConfig config = Config("model");
  config.save_checkpoints_steps = config.save_summary_steps = config.log_step_count_steps = 3;
  const auto make = [this](ModeKeys mode, const RunConfig&) { return Change(Model(mode)); };
  const auto estimator = Estimator::Create(*files_, clock_, spec_.features, make, config);
  ASSERT_TRUE(estimator.ok()) << estimator.status();
  ASSERT_TRUE((*estimator)->Train(train, progress_, never_).ok());
  EXPECT_TRUE(chief->saved);
  EXPECT_FALSE(user->stopped);
  EXPECT_TRUE(last->stopped);
  std::vector<std::string> tags;
  for (const auto& event : Events("model")) {
    if (event.step == 3) tags.push_back(event.tag);
  }
  const auto place = [&](const std::string& tag) {
    return std::find(tags.begin(), tags.end(), tag) - tags.begin();
  };
  EXPECT_LT(place("chief"), place("global_step/sec"));
  EXPECT_LT(place("global_step/sec"), place("loss"));
  EXPECT_LT(place("loss"), place("user"));
  EXPECT_LT(place("user"), place("last"));
  EXPECT_EQ(tags.back(), "last");

  diverges = true;
  user->steps = last->steps = 0;
  train.max_steps.reset();
  const auto wild = NewCustom("wild")->Train(train, progress_, never_);
  EXPECT_THAT(std::string(wild.status().message()), HasSubstr("loss is"));
  EXPECT_EQ(user->steps, last->steps + 1);  // NanTensor stands between them
}

TEST_F(ModelFnTest, AHookCanEndAnEvaluation) {
  class Stop : public Hook {
    absl::Status AfterRun(Session& session, const StepValues&) override {
      session.RequestStop("");
      return absl::OkStatus();
    }
  };
  const auto estimator = NewCustom("model");
  ASSERT_TRUE(estimator->Train(Training(), progress_, never_).ok());
  EvalSpec eval = Evaluation();
  eval.input.reader.batch_size = 50;
  eval.hooks = {std::make_shared<Stop>()};
  EXPECT_EQ(estimator->Evaluate(eval, progress_)->examples, 50u);
}

TEST_F(ModelFnTest, EachErrorHasItsMessage) {
  const struct {
    ModeKeys mode;
    std::function<void(EstimatorSpec*)> change;
    std::string message;
  } cases[] = {
      {ModeKeys::kTrain, [](EstimatorSpec* s) { s->engine.reset(); }, "mode train: missing loss"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->engine.reset(); }, "mode eval: missing loss"},
      {ModeKeys::kPredict, [](EstimatorSpec* s) { s->engine.reset(); },
       "mode predict: missing predictions: give an engine"},
      {ModeKeys::kTrain, [](EstimatorSpec* s) { s->optimizers.pop_back(); },
       "missing train_op: variable 'logits/kernel' is of group 1, there are 1 optimizers"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->head.reset(); }, "mode eval: missing metrics"},
      {ModeKeys::kPredict, [](EstimatorSpec* s) { s->head.reset(); },
       "mode predict: missing predictions: give the head"},
      {ModeKeys::kEval,
       [](EstimatorSpec* s) { s->head->kind = "multi_class", s->head->classes = 3; },
       "the head wants 3 logits, the engine gives 1"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->eval_metrics["loss"] = {}; },
       "metric with name 'loss' is not allowed"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->eval_metrics["global_step"] = {}; },
       "metric with name 'global_step' is not allowed"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->eval_metrics["x"] = {}; }, "metric 'x' is null"},
      {ModeKeys::kEval, [](EstimatorSpec* s) { s->mode = ModeKeys::kTrain; },
       "of mode eval: says mode train"},
      {ModeKeys::kTrain, [](EstimatorSpec* s) { s->training_hooks = {nullptr}; }, "a hook is null"},
  };
  for (const auto& test : cases) {
    auto spec = Model(test.mode);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_TRUE(Validate(*spec, test.mode).ok());
    test.change(&*spec);
    const absl::Status status = Validate(*spec, test.mode);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

TEST_F(ModelFnTest, ExportsOnlyWithAnExportFunction) {
  auto estimator = NewCustom("model");
  ASSERT_TRUE(estimator->Train(Training(), progress_, never_).ok());
  EXPECT_TRUE(absl::IsUnimplemented(estimator->Export("saved")));
  size_t exported = 0;
  change_ = [&](EstimatorSpec* spec) {
    spec->export_model = [&](io::FileSystem&, std::span<const engine::VariableSpec> variables,
                             std::span<const engine::VariableView>, const std::string&) {
      exported = variables.size();
      return absl::OkStatus();
    };
  };
  estimator = NewCustom("model");
  ASSERT_TRUE(estimator->Export("saved").ok());
  EXPECT_EQ(exported, 5u);
}

TEST_F(ModelFnTest, AFolderOfAModelFileIsRefused) {
  ASSERT_TRUE(Train("canned", Training()).ok());
  const absl::Status status = NewCustom("canned")->Train(Training(), progress_, never_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("holds a model of a model file"));
}

}  // namespace
}  // namespace muster::train
