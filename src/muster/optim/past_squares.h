// An optimizer that takes the squares of entries (row_layout.h), which it does not need: a clip by
// norm does, and all gradients of a table have one layout.
#pragma once

#include <memory>

#include "muster/optim/optimizer.h"

namespace muster::optim {

// `inner`, which wants no squares.
std::unique_ptr<Optimizer> NewPastSquares(std::unique_ptr<Optimizer> inner);

}  // namespace muster::optim
