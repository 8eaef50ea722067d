// Any bytes as a place record: refused, or a record that prints back to itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/control/place_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace control = muster::control;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto record = control::ParsePlaceRecord(bytes, "fuzz");
  if (!record.ok()) return 0;
  const auto again = control::ParsePlaceRecord(control::PrintPlaceRecord(*record), "again");
  if (!again.ok() || !(*again == *record)) std::abort();
  return 0;
}
