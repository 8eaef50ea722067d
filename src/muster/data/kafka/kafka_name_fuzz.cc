// Any bytes as a kafka:// name: an error, or a name that prints back to itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/data/kafka/kafka_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = muster::data::ParseKafkaName(text);
  if (!name.ok()) return 0;
  const auto again = muster::data::ParseKafkaName(muster::data::PrintKafkaName(*name));
  if (!again.ok() || !(*again == *name)) std::abort();
  return 0;
}
