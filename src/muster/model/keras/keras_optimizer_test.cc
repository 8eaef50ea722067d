#include "muster/model/keras/keras_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace muster::model {
namespace {

using optim::OptimizerSpec;
using optim::ScheduleSpec;
using testing::ElementsAre;
using testing::HasSubstr;
using ClipKind = optim::ClipSpec::Kind;

// Parses an export of three variables with this optimizer.
absl::StatusOr<KerasOptimizer> ParseWith(const std::string& optimizer) {
  auto model = engine::tensorflow::ParseKerasExport(
      R"({"format": "muster.keras", "version": 1, "variables": [
  {"name": "a", "kind": "dense", "dtype": "float32", "shape": [2], "trainable": true},
  {"name": "b", "kind": "dense", "dtype": "float32", "shape": [2], "trainable": true},
  {"name": "s", "kind": "state", "dtype": "float32", "shape": [2], "trainable": false}],
 "signatures": {"step": {"inputs": {"var_000": "a:0", "var_001": "b:0", "denominator": "d:0"},
  "outputs": {"loss": "l:0", "data_loss": "m:0", "grad_000": "ga:0", "grad_001": "gb:0",
              "new_002": "ns:0"}},
  "learning_rate": {"inputs": {"step": "t:0"}, "outputs": {"learning_rate": "r:0"}},
  "apply": {"inputs": {"step": "t:0"}, "outputs": {"new_var_000": "na:0", "new_var_001": "nb:0"}}},
 "optimizer": )" +
          optimizer + "}",
      "m/model.json");
  MUSTER_RETURN_IF_ERROR(model.status());
  model->folder = "m";
  return ParseKerasOptimizer(*model);
}

// Parses SGD with this learning rate.
absl::StatusOr<KerasOptimizer> WithRate(const std::string& rate) {
  return ParseWith(R"({"name": "SGD", "rule": "keras", "momentum": 0.0, "nesterov": true,
                   "learning_rate": )" +
                   rate + "}");
}

TEST(KerasOptimizerTest, AdamWithDecayThatLeavesVariablesOut) {
  const auto parsed = ParseWith(
      R"({"name": "AdamW", "rule": "keras", "learning_rate": 0.002, "beta_1": 0.8, "beta_2": 0.99,
          "epsilon": 1e-6, "clip": {"global_clipnorm": 2.0},
          "weight_decay": {"rate": 0.004, "excluded": [1]}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  OptimizerSpec expected = optim::DefaultOptimizer("adam");
  expected.rule = OptimizerSpec::Rule::kKeras;
  expected.learning_rate = 0.002;
  expected.parameters["beta1"] = 0.8;
  expected.parameters["beta2"] = 0.99;
  expected.parameters["epsilon"] = 1e-6;
  expected.squares = true;  // needed for the norm
  OptimizerSpec decays = expected;
  decays.weight_decay = 0.004;
  EXPECT_THAT(parsed->specs, ElementsAre(decays, expected));
  EXPECT_THAT(parsed->groups, ElementsAre(0, 1, 0));
  EXPECT_EQ(parsed->clip, (optim::ClipSpec{.kind = ClipKind::kGlobalNorm, .limit = 2}));
}

TEST(KerasOptimizerTest, EveryNumberOfARuleIsRead) {
  const auto ftrl = ParseWith(
      R"({"name": "Ftrl", "rule": "keras", "learning_rate": 0.1, "learning_rate_power": -0.7,
          "initial_accumulator_value": 0.2, "l1_regularization_strength": 0.3,
          "l2_regularization_strength": 0.4, "l2_shrinkage_regularization_strength": 0.5,
          "beta": 0.6, "clip": null, "weight_decay": {"rate": 0.7, "excluded": []}})");
  ASSERT_TRUE(ftrl.ok()) << ftrl.status();
  ASSERT_EQ(ftrl->specs.size(), 1u);
  const OptimizerSpec& spec = ftrl->specs[0];
  EXPECT_EQ(spec.kind, "ftrl");
  EXPECT_EQ(spec.Get("learning_rate_power"), -0.7);
  EXPECT_EQ(spec.Get("initial_accumulator"), 0.2);
  EXPECT_EQ(spec.Get("l1"), 0.3);
  EXPECT_EQ(spec.Get("l2"), 0.4);
  EXPECT_EQ(spec.Get("l2_shrinkage"), 0.5);
  EXPECT_EQ(spec.Get("beta"), 0.6);
  EXPECT_EQ(spec.weight_decay, 0.7);
  EXPECT_EQ(ftrl->clip, optim::ClipSpec());

  const auto rms =
      ParseWith(R"({"name": "RMSprop", "rule": "keras", "learning_rate": 0.1, "rho": 0.8,
      "momentum": 0.5, "epsilon": 1e-5, "centered": true, "clip": {"clipvalue": 0.5}})");
  ASSERT_TRUE(rms.ok()) << rms.status();
  EXPECT_EQ(rms->specs[0].kind, "rmsprop");
  EXPECT_EQ(rms->specs[0].Get("rho"), 0.8);
  EXPECT_EQ(rms->specs[0].Get("momentum"), 0.5);
  EXPECT_EQ(rms->specs[0].Get("epsilon"), 1e-5);
  EXPECT_EQ(rms->specs[0].Get("centered"), 1);
  EXPECT_EQ(rms->clip,
            (optim::ClipSpec{.kind = ClipKind::kValue, .limit = 0.5, .tables_are_cut = true}));

  const auto adagrad = ParseWith(R"({"name": "Adagrad", "rule": "keras", "learning_rate": 0.1,
      "initial_accumulator_value": 0.0, "epsilon": 1e-5})");
  ASSERT_TRUE(adagrad.ok()) << adagrad.status();
  EXPECT_EQ(adagrad->specs[0].kind, "adagrad");
  EXPECT_EQ(adagrad->specs[0].Get("initial_accumulator"), 0);
}

TEST(KerasOptimizerTest, SgdNeedsSquaresIfClippedByNorm) {
  const auto sgd =
      ParseWith(R"({"name": "SGD", "rule": "keras", "learning_rate": 0.1, "momentum": 0.9,
      "nesterov": true, "clip": {"clipnorm": 1.5}})");
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  EXPECT_EQ(sgd->specs[0].Get("nesterov"), 1);
  EXPECT_EQ(sgd->specs[0].Get("momentum"), 0.9);
  EXPECT_TRUE(sgd->specs[0].squares);
  EXPECT_EQ(sgd->clip, (optim::ClipSpec{.kind = ClipKind::kNorm, .limit = 1.5}));
  const auto plain = WithRate("0.1");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->specs[0].squares);
  EXPECT_TRUE((*optim::NewOptimizer(plain->specs[0]))->slots().empty())
      << "without momentum nesterov must be off";
}

TEST(KerasOptimizerTest, EveryScheduleIsRead) {
  const auto rate = [](const std::string& text, int64_t step) {
    const auto parsed = WithRate(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? optim::RateAt(parsed->specs[0], step) : 0;
  };
  const std::string exponential =
      R"({"schedule": "ExponentialDecay", "initial_learning_rate": 0.4, "decay_steps": 10,
          "decay_rate": 0.25, "staircase": )";
  EXPECT_FLOAT_EQ(rate(exponential + "false}", 5), 0.2f);
  EXPECT_FLOAT_EQ(rate(exponential + "true}", 19), 0.1f);
  EXPECT_FLOAT_EQ(rate(R"({"schedule": "InverseTimeDecay", "initial_learning_rate": 0.4,
                           "decay_steps": 10, "decay_rate": 0.5, "staircase": false})",
                       20),
                  0.2f);
  const std::string polynomial =
      R"({"schedule": "PolynomialDecay", "initial_learning_rate": 0.5, "decay_steps": 10,
          "end_learning_rate": 0.1, "power": 2.0, "cycle": )";
  EXPECT_FLOAT_EQ(rate(polynomial + "false}", 30), 0.1f);
  EXPECT_FLOAT_EQ(rate(polynomial + "true}", 15), 0.4f / 16 + 0.1f);
  const std::string piecewise =
      R"({"schedule": "PiecewiseConstantDecay", "boundaries": [10, 20.0], "values": [0.3, 0.2, 0.1]})";
  EXPECT_FLOAT_EQ(rate(piecewise, 10), 0.3f);
  EXPECT_FLOAT_EQ(rate(piecewise, 11), 0.2f);
  EXPECT_FLOAT_EQ(rate(piecewise, 21), 0.1f);
  const std::string cosine =
      R"({"schedule": "CosineDecay", "initial_learning_rate": 0.1, "decay_steps": 10, "alpha": 0.2,
          "warmup_steps": 4, "warmup_target": )";
  EXPECT_FLOAT_EQ(rate(cosine + "null}", 5), 0.06f);
  EXPECT_FLOAT_EQ(rate(cosine + "0.5}", 0), 0.1f);
  EXPECT_FLOAT_EQ(rate(cosine + "0.5}", 2), 0.3f);
  EXPECT_FLOAT_EQ(rate(cosine + "0.5}", 4), 0.5f);
  EXPECT_FLOAT_EQ(rate(cosine + "0.5}", 9), 0.3f);
  const std::string restarts =
      R"({"schedule": "CosineDecayRestarts", "initial_learning_rate": 0.4, "first_decay_steps": 10,
          "t_mul": 2.0, "m_mul": 0.5, "alpha": 0.0})";
  EXPECT_FLOAT_EQ(rate(restarts, 5), 0.2f);
  EXPECT_FLOAT_EQ(rate(restarts, 20), 0.1f);
}

TEST(KerasOptimizerTest, FunctionsAreLeftToTheUpdater) {
  const auto apply = ParseWith(R"({"name": "Lion", "apply": true, "slots": []})");
  ASSERT_TRUE(apply.ok()) << apply.status();
  EXPECT_TRUE(apply->applies);
  EXPECT_THAT(apply->specs, testing::IsEmpty());
  EXPECT_THAT(apply->groups, ElementsAre(0, 0, 0));
  EXPECT_EQ(apply->clip, optim::ClipSpec()) << "clipping belongs to the function";

  const auto schedule = WithRate(R"({"signature": "learning_rate"})");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_FALSE(schedule->applies);
  ASSERT_NE(schedule->rate, nullptr);
  schedule->rate->Set(3, 0.25f);
  EXPECT_EQ(optim::RateAt(schedule->specs[0], 3), 0.25f);
  EXPECT_TRUE(std::isnan(optim::RateAt(schedule->specs[0], 4)))
      << "the rate has not been computed yet";
  EXPECT_EQ(WithRate("0.1")->rate, nullptr);
}

TEST(KerasOptimizerTest, UnknownOptimizersAreRefusedWithAdvice) {
  const auto rule = ParseWith(R"({"name": "Lion", "rule": "keras", "learning_rate": 0.1})");
  EXPECT_EQ(rule.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      ToStd(rule.status().message()),
      HasSubstr("m/model.json.optimizer: Lion: this muster does not know such a rule: export"));
  EXPECT_EQ(WithRate(R"({"schedule": "Mine"})").status().code(), absl::StatusCode::kUnimplemented);
  const auto signature = WithRate(R"({"signature": "rate"})");
  EXPECT_EQ(signature.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ToStd(signature.status().message()), HasSubstr("must be \"learning_rate\""));
}

TEST(KerasOptimizerTest, NumbersOutOfRangeAreReported) {
  const std::string sgd = R"({"name": "SGD", "rule": "keras", "learning_rate": )";
  const std::string adam =
      R"({"name": "Adam", "rule": "keras", "learning_rate": 0.1, "beta_1": 0.9, )";
  const struct {
    std::string optimizer, error;
  } cases[] = {
      {sgd + "0, \"momentum\": 0}", "optimizer: \"learning_rate\" is 0: it must be over 0"},
      {sgd + "\"x\", \"momentum\": 0}", "\"learning_rate\" must be a number"},
      {sgd + "0.1}", "\"momentum\" is missing"},
      {sgd + "0.1, \"momentum\": 1.5}", "\"momentum\" is 1.5: it must be from 0 to 1"},
      {adam + "\"beta_2\": 1, \"epsilon\": 1e-7}", "\"beta_2\" is 1: it must be at least 0"},
      {adam + "\"beta_2\": 0.9, \"epsilon\": 0}", "\"epsilon\" is 0: it must be over 0"},
      {sgd + "0.1, \"momentum\": 0, \"clip\": {\"clipnorm\": -1}}",
       "optimizer.clip: \"clipnorm\" is -1"},
      {sgd + "0.1, \"momentum\": 0, \"clip\": {\"clipnorm\": 1, \"clipvalue\": 1}}",
       "more than one of"},
      {sgd + "0.1, \"momentum\": 0, \"weight_decay\": {\"rate\": -1}}",
       "optimizer.weight_decay: \"rate\" is -1"},
      {sgd + "0.1, \"momentum\": 0, \"weight_decay\": {\"rate\": 1, \"excluded\": [3]}}",
       "\"excluded\" must be numbers of variables"},
      {sgd + R"({"schedule": "ExponentialDecay", "initial_learning_rate": 0.1, "decay_steps": 0,
                 "decay_rate": 0.9}, "momentum": 0})",
       "optimizer.learning_rate: \"decay_steps\" is 0: it must be over 0"},
      {sgd + R"({"schedule": "PiecewiseConstantDecay", "boundaries": [5, 4], "values": [1, 1, 1]},
                 "momentum": 0})",
       "boundaries must ascend"},
      {sgd + R"({"schedule": "PiecewiseConstantDecay", "boundaries": [5], "values": [1, "a"]},
                 "momentum": 0})",
       "\"values\" must be numbers"},
      {sgd + R"({"schedule": "CosineDecay", "initial_learning_rate": 0.1, "decay_steps": 5,
                 "alpha": 0, "warmup_target": 1, "warmup_steps": -1}, "momentum": 0})",
       "\"warmup_steps\" is -1"},
  };
  for (const auto& one : cases) {
    const auto parsed = ParseWith(one.optimizer);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << one.optimizer;
    EXPECT_THAT(ToStd(parsed.status().message()), HasSubstr(one.error));
    EXPECT_THAT(ToStd(parsed.status().message()), HasSubstr("model.json.optimizer"));
  }
}

}  // namespace
}  // namespace muster::model
