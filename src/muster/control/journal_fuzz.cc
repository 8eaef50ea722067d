// Any bytes as a journal: refused, or a state that can be read as a job's, or is refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/control/journal.h"
#include "muster/control/status_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace control = muster::control;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto journal = control::ParseJournal(bytes, "fuzz");
  if (!journal.ok()) return 0;
  muster::formats::JsonFields fields(journal->state, "fuzz");
  // Checksums keep the fuzzer out: the same bytes are also tried as the status itself.
  for (const auto& text :
       {muster::formats::PrintJson(fields.Object("status")), std::string(bytes)}) {
    const auto json = muster::formats::ParseJsonObject(text, "fuzz");
    if (!json.ok()) continue;
    const auto status = control::StatusFromJson(*json, "fuzz");
    if (!status.ok()) continue;
    const auto again = control::StatusFromJson(control::ToJson(*status), "again");
    if (!again.ok() || !(*again == *status)) std::abort();
  }
  return 0;
}
