// WeightMemory: memory for one variable's weights or one of its slots. What does not fit the free
// memory of the machine lies in a file, so that a model can be evaluated, used and exported where
// it does not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/status.h"

namespace muster::train {

// Frees memory, or unmaps a file.
struct FreeWeights {
  size_t mapped = 0;  // bytes; 0: it is memory
  void operator()(float* data) const;
};
using WeightMemory = std::unique_ptr<float[], FreeWeights>;

// Allocates `floats` floats, 64-byte aligned, with huge pages if they are worth that; `name` is for
// errors. More than half of the `free` bytes, of at least 64 MiB, are mapped from a new file
// without a name in $TMPDIR (/tmp), which the kernel reads and writes as it needs: the caller
// writes them all before it allocates more, so that the free memory of the next call is known.
// RESOURCE_EXHAUSTED if there is no room; the message says what to do.
absl::StatusOr<WeightMemory> AllocateWeights(int64_t floats, const std::string& name,
                                             uint64_t free);

}  // namespace muster::train
