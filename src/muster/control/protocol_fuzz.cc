// Any bytes as the body of an agent's report or of its orders: refused, or it comes back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/control/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace control = muster::control;
  const auto json =
      muster::formats::ParseJsonObject({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!json.ok()) return 0;
  if (const auto report = control::ReportFromJson(*json); report.ok()) {
    const auto again = control::ReportFromJson(control::ToJson(*report));
    if (!again.ok() || !(*again == *report)) std::abort();
  }
  if (const auto orders = control::OrdersFromJson(*json); orders.ok()) {
    const auto again = control::OrdersFromJson(control::ToJson(*orders));
    if (!again.ok() || !(*again == *orders)) std::abort();
  }
  return 0;
}
