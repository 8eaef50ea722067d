// Any bytes as a provider's report or as the answer to one: refused, or JSON that prints back to
// itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/launch/slots/slot_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace slots = muster::launch::slots;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto json = muster::formats::ParseJsonObject(bytes, "fuzz");
  if (!json.ok()) return 0;
  if (const auto report = slots::ReportFromJson(*json); report.ok()) {
    const auto again = slots::ReportFromJson(slots::ToJson(*report));
    if (!again.ok() || !(*again == *report)) std::abort();
  }
  if (const auto answer = slots::AnswerFromJson(*json); answer.ok()) {
    const auto again = slots::AnswerFromJson(slots::ToJson(*answer));
    if (!again.ok() || !(*again == *answer)) std::abort();
  }
  return 0;
}
