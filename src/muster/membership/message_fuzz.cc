// Parses any bytes as a membership message: either they are refused, or printing and parsing the
// message again gives an equal one. A message with a view and a change is also the change of that
// view: either it is refused, or the view that it makes is that with these differences.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/membership/view_change.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace membership = muster::membership;
  const auto message = membership::Parse({reinterpret_cast<const char*>(data), size});
  if (!message.ok()) return 0;
  const auto again = membership::Parse(membership::Print(*message));
  if (!again.ok() || !(*again == *message)) std::abort();
  if (!message->view || !message->change) return 0;
  const auto changed = membership::ApplyChange(*message->view, *message->change);
  if (!changed.ok()) return 0;
  const auto same =
      membership::ApplyChange(*message->view, membership::GetChange(*message->view, *changed));
  if (!same.ok() || !(*same == *changed)) std::abort();
  return 0;
}
