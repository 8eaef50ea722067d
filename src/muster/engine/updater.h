// Updater: the part of an optimizer that an engine computes, if the optimizer is not a rule of
// optim/ but a function that came with the model (an exported Keras model).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/engine.h"
#include "muster/formats/bundle.h"

namespace muster::engine {

// State of the optimizer that belongs to no single variable. It has any type but string.
struct UpdaterSlot {
  std::string name;
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};

// The gradient of one variable, over the rows of all replicas. For a table, `values` has
// rows.size() rows, one for each id of the batch, so that rows repeat (GradientSink::WantsEntries).
struct VariableGradient {
  std::span<const float> values = {};
  std::span<const int32_t> rows = {};
};

// Used on the engine's owner thread. It owns no weights and no slots.
class Updater {
 public:
  virtual ~Updater() = default;

  // Whether the learning rate of update `step`, counted from 0, is a function of the step.
  virtual bool has_learning_rate() const = 0;
  virtual absl::StatusOr<float> LearningRate(int64_t step) = 0;

  // Whether Apply trains all variables.
  virtual bool applies() const = 0;
  virtual const std::string& name() const = 0;  // the optimizer's name
  virtual std::span<const UpdaterSlot> slots() const = 0;
  // Computes update `step`: replaces the trained weights and all slots. `weights` and `gradients`
  // are in the order of Engine::variables(); those of states are ignored; tables are whole. After
  // an error weights and slots are unchanged.
  virtual absl::Status Apply(std::span<const VariableView> weights,
                             std::span<const std::span<char>> slots,
                             std::span<const VariableGradient> gradients, int64_t step) = 0;
};

}  // namespace muster::engine
