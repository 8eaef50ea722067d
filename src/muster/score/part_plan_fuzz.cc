// Parses any bytes as a PartPlan: either they are refused, or the plan, printed and parsed again,
// is equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/score/part_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace score = muster::score;
  const auto plan = score::ParsePartPlan({reinterpret_cast<const char*>(data), size}, "plan");
  if (!plan.ok()) return 0;
  const auto again = score::ParsePartPlan(score::Print(*plan), "plan");
  if (!again.ok() || !(*again == *plan)) std::abort();
  return 0;
}
