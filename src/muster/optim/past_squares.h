// PastSquares: lets an optimizer accept gradients with squares of entries (row_layout.h) that it
// does not need: a clip by norm needs them, and all gradients of a table have one layout.
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `inner` must not want squares itself.
std::unique_ptr<Optimizer> NewPastSquares(std::unique_ptr<Optimizer> inner);

}  // namespace muster::optim
