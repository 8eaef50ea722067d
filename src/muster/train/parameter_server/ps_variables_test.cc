// The optimizers and the clipping of a model as parameter servers, and the sinks that push to them,
// see them.
#include "muster/train/parameter_server/ps_variables.h"

#include "muster/train/parameter_server/ps_step.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

model::Model MakeModel(std::string_view yaml) {
  const auto files = io::NewMemoryFileSystem();
  return model::BuildModel(model::ParseModelSpec(*files, yaml, "spec.yaml").value()).value();
}

TEST(PsVariablesTest, TablesOfAnOptimizerThatSquaresArePushedWithSquares) {
  model::Model model = MakeModel(kTestSpec);
  // The deep part gets an optimizer by Keras's rule; the wide part keeps its own.
  ASSERT_EQ(model.optimizer_specs[0].kind, "adagrad");
  model.optimizer_specs[0].rule = optim::OptimizerSpec::Rule::kKeras;
  model.optimizers[0] = optim::NewOptimizer(model.optimizer_specs[0]).value();
  const auto variables = PsVariables(model, /*synchronous=*/true, /*seed=*/1);
  ASSERT_TRUE(variables.ok()) << variables.status();
  const KeepSink sink(*variables);
  int with = 0, without = 0;
  for (size_t i = 0; i < variables->size(); ++i) {
    const ps::Variable& variable = (*variables)[i];
    const bool squares = variable.is_table() && variable.name.starts_with("dnn/");
    EXPECT_EQ(variable.gradient_cols(), squares ? 2 * variable.cols : variable.cols)
        << variable.name;
    EXPECT_EQ(sink.WantsSquares(static_cast<int>(i)), squares) << variable.name;
    (squares ? with : without) += variable.is_table() ? 1 : 0;
  }
  EXPECT_EQ(with, 1);
  EXPECT_EQ(without, 1);
}

TEST(PsVariablesTest, ClippedTablesAreNotClippedAgainOnTheServers) {
  model::Model model = MakeModel(kTestSpec);
  for (const bool cut : {false, true}) {
    model.spec.clip_gradients = {
        .kind = optim::ClipSpec::Kind::kValue, .limit = 0.5, .tables_are_cut = cut};
    const auto variables = PsVariables(model, /*synchronous=*/true, /*seed=*/1);
    ASSERT_TRUE(variables.ok()) << variables.status();
    for (const ps::Variable& variable : *variables) {
      if (variable.kind == ps::Variable::Kind::kState) continue;
      EXPECT_EQ(variable.clip, variable.is_table() && cut ? 0 : 0.5f) << variable.name;
    }
  }
}

}  // namespace
}  // namespace muster::train
