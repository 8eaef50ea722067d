#include "muster/engine/engine.h"

namespace muster::engine {

int64_t VariableSpec::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace muster::engine
