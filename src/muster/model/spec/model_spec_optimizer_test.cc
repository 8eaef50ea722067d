#include "muster/model/spec/model_spec_test_util.h"
#include "muster/optim/optimizer_kind.h"

namespace muster::model {
namespace {

using testing::HasSubstr;
using ModelSpecOptimizerTest = ModelSpecTest;

TEST_F(ModelSpecOptimizerTest, PartsWithoutAnOptimizerGetTfEstimatorsDefault) {
  const auto linear = Parse(kSmallSpec);
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->linear->optimizer.kind, "ftrl");
  EXPECT_EQ(linear->linear->optimizer.learning_rate, 0.2);  // min(0.2, 1 / sqrt(1))
  std::string wide_deep(kSmallSpec);
  wide_deep.replace(wide_deep.find("type: linear"), 12, "type: wide_deep");
  wide_deep += "  dnn: {columns: [x], hidden_units: [2]}\n";
  const auto both = Parse(wide_deep);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->linear->optimizer.learning_rate, 0.005);
  EXPECT_EQ(both->dnn->optimizer.kind, "adagrad");
  EXPECT_EQ(both->dnn->optimizer.learning_rate, 0.001);
  ExpectPrintsBack(*both);
}

// For all optimizers in the table: each parameter is read, printed and has its default.
TEST_F(ModelSpecOptimizerTest, EachParameterOfTheTableIsReadAndPrinted) {
  const auto parse = [this](std::string_view optimizer) {
    return Parse(StrCat(kSmallSpec.substr(0, kSmallSpec.find("[x]}")),
                        "[x], optimizer: ", optimizer, "}\n"));
  };
  for (const optim::OptimizerKind* const kind : optim::OptimizerKinds()) {
    const auto plain = parse(kind->name);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const optim::OptimizerSpec& defaults = plain->linear->optimizer;
    EXPECT_EQ(defaults, optim::DefaultOptimizer(kind->name));
    ExpectPrintsBack(*plain);
    for (const optim::OptimizerParameter& parameter : kind->parameters) {
      if (parameter.is_flag()) continue;  // some flags need other parameters
      const double value = parameter.range == optim::ValueRange::kNotPositive ? -0.25 : 0.25;
      const auto given = parse(StrCat("{", kind->name, ": {", parameter.name, ": ", value, "}}"));
      ASSERT_TRUE(given.ok()) << given.status();
      EXPECT_EQ(given->linear->optimizer.Get(parameter.name), value) << parameter.name;
      ExpectPrintsBack(*given);
    }
    const auto unknown = parse(StrCat("{", kind->name, ": {bata: 1}}"));
    EXPECT_THAT(ToStd(unknown.status().message()), HasSubstr("unknown key 'bata'"));
  }
}

// Each optimizer prints back to what it was parsed from.
TEST_F(ModelSpecOptimizerTest, ReadsOptimizersSchedulesAndClipping) {
  const char* const models[] = {
      "optimizer: sgd",
      "optimizer: {sgd: {learning_rate: 0.5, momentum: 0.9, nesterov: true}}",
      "optimizer: {rmsprop: {rho: 0.8, momentum: 0.5, epsilon: 0.001, centered: true}}",
      "optimizer: {rmsprop: {lazy: true}}",
      "optimizer: {adam: {weight_decay: 0.004}}",
      "optimizer: {sgd: {weight_decay: 0.01, lazy: true}}",
      "optimizer: {adagrad: {weight_decay: 0.01}}",
      "optimizer: {adam: {learning_rate: {exponential: {initial: 0.1, decay_steps: 1000, "
      "decay_rate: 0.96, staircase: true}}}}",
      "optimizer: {adam: {learning_rate: {inverse_time: {initial: 0.1, decay_steps: 10, "
      "decay_rate: 0.5}}}}",
      "optimizer: {adam: {learning_rate: {polynomial: {initial: 0.1, decay_steps: 10, end: 0.01, "
      "power: 0.5, cycle: true}}}}",
      "optimizer: {adagrad: {learning_rate: {cosine: {initial: 0.1, decay_steps: 10}, "
      "warm_up_steps: 5, warm_up_from: 0.01}}}",
      "optimizer: {adagrad: {learning_rate: {cosine_restarts: {initial: 0.1, decay_steps: 10, "
      "t_mul: 3, m_mul: 0.5, alpha: 0.1}}}}",
      "optimizer: {sgd: {learning_rate: {piecewise: {boundaries: [10, 200], "
      "values: [0.1, 0.01, 0.001]}}}}",
      "optimizer: {sgd: {learning_rate: {constant: 0.1, warm_up_steps: 100}}}",
      "optimizer: {sgd: {learning_rate: 0}}",
  };
  std::vector<ModelSpec> specs;
  for (const char* const optimizer : models) {
    for (const char* const clip :
         {"", "  clip_gradients: {value: 0.5}\n", "  clip_gradients: {norm: 1}\n",
          "  clip_gradients: {global_norm: 5}\n"}) {
      const std::string yaml =
          StrCat(kSmallSpec.substr(0, kSmallSpec.find("[x]}")), "[x], ", optimizer, "}\n", clip);
      const auto spec = Parse(yaml);
      ASSERT_TRUE(spec.ok()) << spec.status() << "\n" << yaml;
      ExpectPrintsBack(*spec);
      for (const ModelSpec& other : specs) EXPECT_NE(DescribeDifference(*spec, other), "") << yaml;
      specs.push_back(*spec);
    }
  }
  const optim::OptimizerSpec& warm = specs[40].linear->optimizer;
  EXPECT_EQ(warm.schedule.kind, optim::ScheduleSpec::Kind::kCosine);
  EXPECT_EQ(warm.learning_rate, 0.1);
  EXPECT_EQ(warm.schedule.warm_up_steps, 5);
}

TEST_F(ModelSpecOptimizerTest, RefusesTwoOptimizers) {
  EXPECT_THAT(
      ErrorAfter("columns: [x]", "columns: [x], optimizer: {ftrl: {}, adam: {learning_rate: 1}}"),
      HasSubstr("must have one entry: the optimizer; it has 'ftrl' and 'adam'"));
}

TEST_F(ModelSpecOptimizerTest, RefusesWrongRatesAndClipping) {
  const auto error = [&](std::string_view rate) {
    return ErrorAfter("columns: [x]",
                      StrCat("columns: [x], optimizer: {ftrl: {learning_rate: ", rate, "}}"));
  };
  EXPECT_THAT(error("-1"), HasSubstr("learning_rate: -1 is not"));
  EXPECT_THAT(error("0"), HasSubstr("Ftrl divides by the learning rate, which is 0"));
  EXPECT_THAT(error("{cosin: {}}"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(error("{warm_up_steps: 5}"), HasSubstr("must have one schedule"));
  EXPECT_THAT(error("{constant: 1, cosine: {initial: 1, decay_steps: 5}}"),
              HasSubstr("must have one schedule"));
  EXPECT_THAT(error("{constant: 1, warm_up_from: 0.1}"), HasSubstr("needs 'warm_up_steps'"));
  EXPECT_THAT(error("{cosine: {initial: 1}}"), HasSubstr("decay_steps"));
  EXPECT_THAT(error("{cosine: {initial: 1, decay_steps: 5}}"), HasSubstr("reaches 0"));
  EXPECT_THAT(error("{exponential: {initial: 1, decay_steps: 5, decay_rate: 1, power: 2}}"),
              HasSubstr("unknown key 'power'"));
  EXPECT_THAT(error("{piecewise: {boundaries: [5], values: [1]}}"), HasSubstr("one value more"));
  EXPECT_THAT(error("{piecewise: {boundaries: [5, 1], values: [1, 1, 1]}}"),
              HasSubstr("must ascend"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgd: {nesterov: true}}"),
              HasSubstr("momentum over 0"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {ftrl: {weight_decay: 1}}"),
              HasSubstr("unknown key 'weight_decay'"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgd: {weight_decay: -1}}"),
              HasSubstr("weight_decay: -1 is not"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgd: 3}"),
              HasSubstr("optimizer"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  clip_gradients: {value: 1, norm: 1}"),
              HasSubstr("must have one of"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  clip_gradients: {norm: 0}"),
              HasSubstr("norm: 0 is not"));
}

}  // namespace
}  // namespace muster::model
