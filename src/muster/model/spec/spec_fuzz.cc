// Parses any bytes as a model file: the result is an error, or a spec that prints back to itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/io/memory_file_system.h"
#include "muster/model/spec/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto files = muster::io::NewMemoryFileSystem();
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  const auto spec = muster::model::ParseModelSpec(*files, yaml, "fuzz.yaml");
  if (!spec.ok()) return 0;
  const std::string printed = muster::model::PrintModelSpec(*spec);
  const auto again = muster::model::ParseModelSpec(*files, printed, "fuzz.yaml");
  if (!again.ok() || !(*again == *spec)) std::abort();
  return 0;
}
