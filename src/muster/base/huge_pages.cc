#include "muster/base/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace muster {
namespace {

// Of an empty vector.
void Reserve(size_t count, std::vector<float>* values) {
  values->reserve(count);
  AskForHugePages(values->data(), count * sizeof(float));
}

}  // namespace

void AskForHugePages(void* data, size_t bytes) {
  if (bytes < kWorthHugePages) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const uintptr_t last = (begin + bytes) / kHugePageBytes * kHugePageBytes;
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
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
