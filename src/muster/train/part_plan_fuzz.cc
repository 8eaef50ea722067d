// Parses any bytes as a plan of parts: they are refused, or printing and parsing the plan again
// gives an equal one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/train/part_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace train = muster::train;
  const auto plan = train::ParsePartPlan({reinterpret_cast<const char*>(data), size}, "plan");
  if (!plan.ok()) return 0;
  const auto again = train::ParsePartPlan(train::Print(*plan), "plan");
  if (!again.ok() || !(*again == *plan)) std::abort();
  return 0;
}
