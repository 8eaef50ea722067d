#include "muster/data/kafka/rdkafka_library.h"

#include <dlfcn.h>

#include "muster/base/strings.h"

namespace muster::data {
namespace {

constexpr char kLibraryName[] = "librdkafka.so.1";

absl::StatusOr<RdKafka> Load() {
  void* const handle = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        StrCat("kafka:// needs ", kLibraryName, ": ", dlerror(),
               "; install the package librdkafka1 (Debian, Ubuntu) or librdkafka (Fedora)"));
  }
  RdKafka library;
  const char* missing = nullptr;
#define MUSTER_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (library.name == nullptr && missing == nullptr) missing = #name;
  MUSTER_RDKAFKA_FUNCTIONS(MUSTER_FIND)
#undef MUSTER_FIND
  if (missing == nullptr) return library;
  return absl::FailedPreconditionError(
      StrCat(kLibraryName, " has no function ", missing, ": install version 1.9 or newer of it"));
}

}  // namespace

absl::StatusOr<const RdKafka*> LoadRdKafka() {
  static const auto* const kLoaded = new absl::StatusOr<RdKafka>(Load());
  MUSTER_RETURN_IF_ERROR(kLoaded->status());
  return &**kLoaded;
}

}  // namespace muster::data
