// Shared by the tests of this layer: compares gradients with central differences of the loss.
#pragma once

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "muster/engine/native/test_support.h"

namespace muster::engine::native {

// If a relu switches within a difference, the difference is wrong: for such elements, which are
// few, two step lengths disagree.
inline void CheckGradients(Engine& engine, const features::FeatureBatch& batch,
                           double scale = 0.5) {
  TestWeights weights(engine, scale);
  RecordingSink sink(engine);
  const StepContext context{.seed = 5, .step = 3};
  const auto result = engine.Step(weights.views(), batch, context, sink);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto difference = [&](float& w, float step) {
    const float before = w;
    double loss[2];
    for (const int side : {0, 1}) {
      w = side == 0 ? before - step : before + step;
      RecordingSink ignored(engine);
      loss[side] = engine.Step(weights.views(), batch, context, ignored)->loss;
    }
    const double distance = static_cast<double>(before + step) - static_cast<double>(before - step);
    w = before;
    return (loss[1] - loss[0]) / distance;
  };
  int skipped = 0, checked = 0;
  for (size_t v = 0; v < engine.variables().size(); ++v) {
    const VariableSpec& spec = engine.variables()[v];
    if (spec.kind == VariableKind::kState) continue;
    ASSERT_TRUE(sink.dense.contains(spec.name)) << spec.name << " has no gradient";
    double most = 0;
    for (size_t i = 0; i < weights.at(v).size(); ++i) {
      const double coarse = difference(weights.at(v)[i], 1e-2f);
      const double fine = difference(weights.at(v)[i], 5e-3f);
      ++checked;
      if (std::fabs(coarse - fine) > 1.5e-4) {
        ++skipped;
        continue;
      }
      EXPECT_NEAR(sink.dense[spec.name][i], fine, 3e-4 + 2e-3 * std::fabs(fine))
          << spec.name << " element " << i;
      most = std::max(most, std::fabs(fine));
    }
    EXPECT_GT(most, 2e-3) << spec.name << ": all its gradients are nearly 0, so nothing was tested";
  }
  EXPECT_LE(skipped, checked / 10);
}

}  // namespace muster::engine::native
