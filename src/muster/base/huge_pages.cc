#include "muster/base/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace muster {
namespace {

// Reserves memory of a vector that has none.
void Reserve(size_t count, std::vector<float>* values) {
  values->reserve(count);
  AskForHugePages(values->data(), count * sizeof(float));
}

}  // namespace

void AskForHugePages(void* data, size_t bytes) {
  if (bytes < kWorthHugePages) return;
  const size_t past = reinterpret_cast<uintptr_t>(data) % kHugePageBytes;
  const size_t before = past == 0 ? 0 : kHugePageBytes - past;
  const size_t whole = (bytes - before) / kHugePageBytes * kHugePageBytes;
  (void)madvise(static_cast<char*>(data) + before, whole, MADV_HUGEPAGE);
}

void MakeZeros(size_t count, std::vector<float>* values) {
  values->clear();
  Reserve(count, values);
  values->resize(count);
}

void ReserveMore(size_t count, std::vector<float>* values) {
  const size_t needed = values->size() + count;
  if (needed <= values->capacity()) return;
  std::vector<float> larger;
  Reserve(std::max(needed, 2 * values->capacity()), &larger);
  larger.insert(larger.end(), values->begin(), values->end());
  values->swap(larger);
}

}  // namespace muster
