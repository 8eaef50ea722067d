// Parses any bytes as a membership message: either they are refused, or printing and parsing the
// message again gives an equal one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/membership/view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace membership = muster::membership;
  const auto message = membership::Parse({reinterpret_cast<const char*>(data), size});
  if (!message.ok()) return 0;
  const auto again = membership::Parse(membership::Print(*message));
  if (!again.ok() || !(*again == *message)) std::abort();
  return 0;
}
