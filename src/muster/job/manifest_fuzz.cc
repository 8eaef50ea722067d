// Any bytes as a job file: an error or a spec that prints back to itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "muster/job/manifest.h"
#include "muster/job/pod_template.h"
#include "muster/job/volumes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = muster::job::ParseManifest(text, "fuzz.yaml");
  if (!manifest.ok()) return 0;
  for (const auto& [type, replica] : manifest->spec.replicas) {
    (void)muster::job::ParseProcess(replica.pod_template);
    (void)muster::job::UnusedFields(replica.pod_template);
  }
  for (const bool exists : {false, true}) {
    muster::job::JobSpec mapped = manifest->spec;
    std::vector<std::string> notes;
    const auto status = muster::job::MapVolumes(
        {}, [exists](const std::string&) { return exists; }, &mapped, &notes);
    for (const auto& [type, replica] : mapped.replicas) {
      if (status.ok()) (void)muster::job::ParseProcess(replica.pod_template);
    }
  }
  const auto again =
      muster::job::ParseManifest(muster::job::PrintManifest(manifest->spec), "again");
  if (!again.ok() || !(again->spec == manifest->spec)) std::abort();
  return 0;
}
